"""What pages share and only Streamlit needs: caching, settings, messages, input, result cards."""
