"""Results -> Plotly figures, shared by app, notebooks and reports. No model code, no Streamlit.

One file a family of figures; the shared look is in `style`.
"""
