"""What a service answered, one readable file a case: written while a run talks to it, played again without it."""
