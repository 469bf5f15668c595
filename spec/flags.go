package spec

import (
	"errors"
	"strings"
)

// FromFlags is the name that mistakes give to a file that flags stand for.
const FromFlags = "command line"

// FieldFlag says which flag stands for a field, such as "load.concurrency". A field that ends in a dot stands for all below
// it.
type FieldFlag struct{ Field, Flag string }

// NamingFlags puts flags in place of fields into the mistakes of a file that was made of flags. Such a file has no lines
// that a user could look up.
func NamingFlags(err error, flags []FieldFlag) error {
	var mistakes Errors
	if !errors.As(err, &mistakes) {
		return err
	}
	for i, m := range mistakes {
		mistakes[i].Line, mistakes[i].Path = 0, flagOf(m.Path, flags)
	}
	return mistakes
}

// flagOf is the flag that stands for a field; the field itself where none does.
func flagOf(field string, flags []FieldFlag) string {
	for _, f := range flags {
		if rest, found := strings.CutPrefix(field, f.Field); found {
			return strings.TrimSpace(f.Flag + rest)
		}
	}
	return field
}
