// Package fault has the errors of the engine for clients: a class, as in Triton, and a text. The
// engine makes them, and each front end maps the class to a status of its protocol.
package fault

import (
	"errors"
	"fmt"
	"strings"
)

// Code is the class of an error, as in Triton. Each front end maps it to its own status.
type Code int

// Classes of errors.
const (
	Unknown Code = iota
	Internal
	NotFound
	InvalidArgument
	Unavailable
	Unsupported
	AlreadyExists
	Cancelled
	Exhausted
)

// String returns Triton's prefix for the reason of a failed load.
func (c Code) String() string {
	switch c {
	case Internal:
		return "Internal"
	case NotFound:
		return "Not found"
	case InvalidArgument:
		return "Invalid argument"
	case Unavailable:
		return "Unavailable"
	case Unsupported:
		return "Unsupported"
	case AlreadyExists:
		return "Already exists"
	case Cancelled:
		return "Cancelled"
	case Exhausted:
		return "Resource exhausted"
	default:
		return "Unknown"
	}
}

// Error is an error for a client. Text is Triton's wording for the same error, if Triton has it,
// since clients match on it. So it may break this project's style of messages.
type Error struct {
	Code Code
	Text string
}

func (e *Error) Error() string { return e.Text }

// Errorf makes an Error.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{code, fmt.Sprintf(format, args...)}
}

// Full returns the error of a request for which there is no room in the memory for clients.
func Full(m interface{ Max() int64 }) *Error {
	return Errorf(Exhausted, "requests and answers take more than the %d bytes of memory that they may, try again later", m.Max())
}

// CodeOf returns the class of err. It is Internal for errors that are not an Error.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Internal
}

// longestText bounds the bytes of an error's text that a client gets. A request can have 65,536
// names of megabytes. A text that repeats them would be as large as the request, even for a client
// that does not read it.
const longestText = 16 << 10

// TextOf returns the text of an error for a client, or its first bytes.
func TextOf(err error) string {
	text := err.Error()
	if len(text) <= longestText {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes more)", strings.ToValidUTF8(text[:longestText], ""), len(text)-longestText)
}

// Reason returns err with its class in front, as in the repository index.
func Reason(err error) string { return fmt.Sprintf("%v: %s", CodeOf(err), TextOf(err)) }
