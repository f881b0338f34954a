"""How rooms get in: what a chat system says, as records of the contract, and labels for memories."""
