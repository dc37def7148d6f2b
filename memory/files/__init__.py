"""Long files of conversations; requests contain passages of them."""
