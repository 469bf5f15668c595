package document

import (
	"errors"
	"strings"
)

// FieldFlag maps a field to a flag, such as "load.concurrency". A field that ends in a dot includes
// all fields below it.
type FieldFlag struct{ Field, Flag string }

// NamingFlags replaces fields by flags in the mistakes of a file that was made from flags. Such a
// file has no lines that a user could look up.
func NamingFlags(err error, flags []FieldFlag) error {
	var mistakes Errors
	if !errors.As(err, &mistakes) {
		return err
	}
	for i, m := range mistakes {
		mistakes[i].Line = 0
		mistakes[i].Path, mistakes[i].IsFlag = flagOf(m.Path, flags)
	}
	return mistakes
}

// flagOf returns the flag of a field. Without one it returns the field itself, and false.
func flagOf(field string, flags []FieldFlag) (string, bool) {
	for _, f := range flags {
		if rest, found := strings.CutPrefix(field, f.Field); found {
			return strings.TrimSpace(f.Flag + rest), true
		}
	}
	return field, false
}
