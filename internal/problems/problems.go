// Package problems collects the mistakes in a foreign file, so that they are reported together. A
// hostile file may have endless mistakes, so only the first ones are kept, and the others are
// counted.
package problems

import (
	"errors"
	"fmt"
	"strings"
)

// Most is the number of reported problems.
const Most = 20

// List collects problems. The zero List has none.
type List struct {
	told []error
	more int
}

// Add adds a problem. It ignores nil.
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

// AddFunc adds a problem whose description is expensive. describe is only called if the problem is
// reported.
func (l *List) AddFunc(describe func() error) {
	if len(l.told) == Most {
		l.more++
		return
	}
	l.Add(describe())
}

// IsEmpty reports whether there is no problem.
func (l *List) IsEmpty() bool { return len(l.told) == 0 }

// Err returns all problems as one error, one per line, and nil without problems.
func (l *List) Err() error {
	if l.more == 0 {
		return errors.Join(l.told...)
	}
	return errors.Join(append(l.told[:len(l.told):len(l.told)], fmt.Errorf("and %d more", l.more))...)
}

// Quote lists names for a message. If there are many, it lists the first ones.
func Quote(names []string) string {
	if len(names) <= Most {
		return fmt.Sprintf("%q", names)
	}
	return strings.TrimSuffix(fmt.Sprintf("%q", names[:Most]), "]") + fmt.Sprintf(" and %d more]", len(names)-Most)
}
