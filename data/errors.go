package data

import "fmt"

// Error is a fault of the user's data or of what was asked of it: one clear
// line, which the command line maps to exit code 2.
type Error struct {
	Path    string // the file or folder at fault; empty when there is none
	Message string
	Hint    string // what the user can do about it; may be empty
	Err     error  // the underlying error, if any; its text is part of Message
}

func (e *Error) Error() string {
	line := e.Message
	if e.Path != "" {
		line = e.Path + ": " + line
	}
	if e.Hint != "" {
		line += " (" + e.Hint + ")"
	}
	return line
}

// Unwrap gives the underlying error to errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Err }

func faultf(path, hint, format string, args ...any) *Error {
	return &Error{Path: path, Message: fmt.Sprintf(format, args...), Hint: hint}
}
