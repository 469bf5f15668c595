//go:build !linux

package load

import "errors"

// Pin works on Linux only.
func Pin([]int) error {
	return errors.New("cannot pin the load generator to CPUs: this system offers no way to")
}
