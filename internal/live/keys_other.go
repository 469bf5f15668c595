//go:build !linux && !darwin

package live

import (
	"errors"
	"os"
)

// mode is the terminal's mode in which single keys are read. This system has none that we know.
type mode struct{}

func keyMode(*os.File) (mode, error) { return mode{}, errors.New("this system has no known terminals") }

func (mode) enter() error { return nil }
func (mode) leave()       {}

func (s *Screen) readKeys() {}

func watchSize() (chan os.Signal, func()) { return nil, func() {} }

func isBack(os.Signal) bool { return false }

// shrink does nothing: there is no guard.
func shrink(*os.File) {}
