"""Charts as SVG made on the server: figures by queries, drawing by plain functions."""
