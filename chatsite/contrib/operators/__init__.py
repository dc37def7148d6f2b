"""What operators of a site with many people switch, limit, announce and trace."""
