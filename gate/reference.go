package gate

import (
	"fmt"
	"strings"

	"tuner/measure"
)

// SavedReference reads a gate's saved baseline, if it has one. notes explain the basis of its
// figures to people. refused is the reason why the baseline must not be used: it comes from another
// machine, and that is not allowed.
func SavedReference(s Setup, allowOtherMachine bool) (reference map[measure.Metric]Reference, notes []string, refused string, err error) {
	path := s.Spec.Baseline.Saved
	if path == "" {
		return nil, nil, "", nil
	}
	saved, err := ReadSaved(path)
	if err != nil {
		return nil, nil, "", err
	}
	text := saved.otherMachine(path, s)
	if text != "" && !allowOtherMachine {
		return nil, nil, text + ", whose figures do not compare; save one here with --save-baseline, or measure the baseline's model, " +
			"or take the risk with --allow-other-machine", nil
	}
	reference, notes, err = saved.References(path, s)
	if text != "" {
		notes = append(notes, "Note that "+text+".")
	}
	return reference, notes, "", err
}

// otherMachine describes how the machine of a saved baseline differs from this one; "" for the same
// machine.
func (s Saved) otherMachine(path string, setup Setup) string {
	if s.Fingerprint == setup.Fingerprint {
		return ""
	}
	differences := Differences(s.Machine, setup.Machine)
	if len(differences) == 0 {
		differences = []string{fmt.Sprintf("fingerprint: %s then, %s now", s.Fingerprint, setup.Fingerprint)}
	}
	return fmt.Sprintf("the baseline %q was saved on another machine (%s)", path, strings.Join(differences, "; "))
}
