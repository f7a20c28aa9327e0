"""`/v1/responses`: the body and its items, the request they make, the items and events that come back."""
