"""What a case expects: matchers of values, expected calls and their assignment to actual ones, and the judgement."""
