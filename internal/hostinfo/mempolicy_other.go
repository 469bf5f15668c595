//go:build !linux

package hostinfo

import "errors"

// BindsMemory returns the reason why processes may not bind their memory to a NUMA node.
func BindsMemory() error { return errors.New("only Linux binds memory to NUMA nodes") }
