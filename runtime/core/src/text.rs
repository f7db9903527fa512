//! Errors in a text file: where, what, how to mend.
