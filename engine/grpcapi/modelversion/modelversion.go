// Package modelversion reads the version of a model in a gRPC request.
package modelversion

import (
	"strconv"
	"strings"

	"tuner/engine/fault"
)

// Parse reads a model version. "" is the newest, 0. As with C's strtol, leading white space
// and any text after the digits are ignored.
func Parse(model, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(number(text), 10, 64)
	switch {
	case err != nil:
		return 0, fault.Errorf(fault.InvalidArgument,
			"failed to get model version from specified version string '%s' (details: stol), version should be an integral value > 0", text)
	case n < 0:
		return 0, fault.Errorf(fault.InvalidArgument, "invalid model version specified '%s' , version should be an integral value > 0", text)
	case n == 0: // neither a version nor the newest
		return 0, fault.Errorf(fault.NotFound, "Request for unknown model: '%s' version 0 is not found", model)
	}
	return n, nil
}

// number returns the part of a text that strtol reads.
func number(text string) string {
	text = strings.TrimLeft(text, " \t\n\v\f\r")
	end := 0
	if strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+") {
		end = 1
	}
	for end < len(text) && '0' <= text[end] && text[end] <= '9' {
		end++
	}
	return text[:end]
}
