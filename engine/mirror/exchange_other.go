//go:build !linux

package mirror

import "errors"

// exchange puts the folder new where the folder old is, and the other way round. old may be missing.
func exchange(new, old string) error { return exchangeInSteps(new, old) }

// freeBytes is not known here, so that a full disk ends a download.
func freeBytes(string) (int64, error) { return 0, errors.ErrUnsupported }
