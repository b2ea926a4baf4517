"""Who the machines are: a small certificate authority, enrolment tokens, renewal, revocation."""
