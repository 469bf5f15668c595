package mirror

import (
	"errors"
	"io/fs"
	"os"
)

// exchangeInSteps is exchange where the system has no call for it. For a moment there is no folder.
func exchangeInSteps(new, old string) error {
	aside := new + ".old"
	if err := os.Rename(old, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(new, old); err != nil {
		return errors.Join(err, os.Rename(aside, old))
	}
	return os.RemoveAll(aside)
}
