"""The interactive report: a lineage graph as one HTML file that needs nothing else.

``model`` is what is drawn, ``union`` lays two versions over each other, ``layout`` places datasets from left to right,
``html`` puts the data, the style and the scripts of ``assets/`` into one file.
"""
