"""Results -> Plotly figures, shared by app, notebooks and reports. No model code, no Streamlit.

One file per family of figures; those of the lessons lie with them (`lessons.figures`). `style` is the look
that all share, `marks` are the lines.
"""
