"""How dates are written where Django has another idea of it than the pages."""
