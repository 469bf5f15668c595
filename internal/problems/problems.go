// Package problems collects what is wrong with a foreign file, so that all of it is told at once; but a hostile file has no
// end of mistakes, so only the first are kept, and the rest counted.
package problems

import (
	"errors"
	"fmt"
	"strings"
)

// Most is how many problems are told.
const Most = 20

// List collects problems. The zero List has none.
type List struct {
	told []error
	more int
}

// Add adds a problem; nil is none.
func (l *List) Add(err error) {
	switch {
	case err == nil:
	case len(l.told) < Most:
		l.told = append(l.told, err)
	default:
		l.more++
	}
}

// Addf adds a problem.
func (l *List) Addf(format string, args ...any) {
	l.AddFunc(func() error { return fmt.Errorf(format, args...) })
}

// AddFunc adds a problem whose words take work: describe is called only when it is told.
func (l *List) AddFunc(describe func() error) {
	if len(l.told) == Most {
		l.more++
		return
	}
	l.Add(describe())
}

// IsEmpty reports whether there is no problem.
func (l *List) IsEmpty() bool { return len(l.told) == 0 }

// Err returns all problems as one error, a line each, nil when there is none.
func (l *List) Err() error {
	if l.more == 0 {
		return errors.Join(l.told...)
	}
	return errors.Join(append(l.told[:len(l.told):len(l.told)], fmt.Errorf("and %d more", l.more))...)
}

// Quote lists names for a message, the first of them where there are many.
func Quote(names []string) string {
	if len(names) <= Most {
		return fmt.Sprintf("%q", names)
	}
	return strings.TrimSuffix(fmt.Sprintf("%q", names[:Most]), "]") + fmt.Sprintf(" and %d more]", len(names)-Most)
}
