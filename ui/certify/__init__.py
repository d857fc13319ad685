"""What the Certify page needs of Streamlit."""
