package spec

import "strings"

// FromFlags is the file name in mistakes of a file that was made from flags, if they are of no single
// flag.
const FromFlags = "command line"

// flagStart begins every flag, and the path of a profile that a flag made.
const flagStart = "--"

// Place names a field in a message: the field of a file, or the flag for it if the file was made from
// flags.
func Place(path, field, flag string) string {
	if path == FromFlags {
		return flagStart + flag
	}
	return path + ": " + field
}

// IsFromFlags reports whether the profile was made from flags, and not from a file.
func (p Profile) IsFromFlags() bool {
	return p.Path == FromFlags || strings.HasPrefix(p.Path, flagStart)
}
