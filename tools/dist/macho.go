package main

import (
	"debug/macho"
	"fmt"
	"slices"
	"strings"
)

// Load commands of Mach-O that debug/macho has no names for (mach-o/loader.h).
const (
	loadCodeSignature = 0x1d
	loadBuildVersion  = 0x32
)

// checkMachO refuses a binary that a Mac with Apple's processor would not start. It cannot be run here. It must be a program for arm64 and
// macOS, must be signed, since the kernel ends unsigned ones, and may need libraries alone that every Mac has. Go's linker signs it ad hoc.
func checkMachO(path string) error {
	f, err := macho.Open(path)
	if err != nil {
		return fmt.Errorf("%s is no Mach-O file: %w", path, err)
	}
	defer f.Close()
	if f.Cpu != macho.CpuArm64 || f.Type != macho.TypeExec || f.Flags&macho.FlagPIE == 0 {
		return fmt.Errorf("%s is a %v for %v with the flags %#x, want a program for arm64 that loads at any address", path, f.Type, f.Cpu, f.Flags)
	}
	var commands []uint32
	for _, l := range f.Loads {
		commands = append(commands, f.ByteOrder.Uint32(l.Raw()))
	}
	for command, what := range map[uint32]string{loadCodeSignature: "signature", loadBuildVersion: "least version of macOS"} {
		if !slices.Contains(commands, command) {
			return fmt.Errorf("%s has no %s", path, what)
		}
	}
	libraries, err := f.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("cannot read what %s needs: %w", path, err)
	}
	for _, l := range libraries {
		if !strings.HasPrefix(l, "/usr/lib/") && !strings.HasPrefix(l, "/System/Library/Frameworks/") {
			return fmt.Errorf("%s needs %s, which not every Mac has", path, l)
		}
	}
	return nil
}
