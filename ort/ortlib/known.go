package ortlib

import (
	"os"
	"slices"
)

// KnownBuild is a build that is installed or can be installed.
type KnownBuild struct {
	Name      string `json:"name"` // flavour@version
	Installed bool   `json:"installed"`
	Selected  bool   `json:"selected"` // used if the user names no other
	// "" unless installed; for a damaged build its folder
	Library string `json:"library,omitempty"`
	Error   string `json:"error,omitempty"` // why it cannot be used, and the remedy
	Build   Build  `json:"-"`               // zero unless it can be used
}

// Known lists the library that TUNER_ORT_LIBRARY names, the installed builds, the damaged builds,
// and then those that can be installed.
func Known() ([]KnownBuild, error) {
	store, err := UserStore()
	if err != nil {
		return nil, err
	}
	installed, damaged, err := store.scan()
	if err != nil {
		return nil, err
	}
	known := []KnownBuild{}
	selected, selectErr := Resolve("")
	named := os.Getenv(buildVariable)
	switch {
	case selectErr != nil && named != "": // if it is unset, there is only no build to select
		known = append(known, KnownBuild{Name: External, Library: named, Error: selectErr.Error()})
	case selectErr == nil && selected.Flavour == External:
		installed = append([]Build{selected}, installed...)
	}
	for _, build := range installed {
		known = append(known, KnownBuild{Name: build.Name(), Installed: true, Selected: selectErr == nil && build == selected, Library: build.Library, Build: build})
	}
	for _, d := range damaged {
		known = append(known, KnownBuild{Name: d.Name, Installed: true, Library: d.Dir, Error: d.Err.Error()})
	}
	for _, name := range store.Offered() {
		if !slices.ContainsFunc(known, func(k KnownBuild) bool { return k.Name == name }) {
			known = append(known, KnownBuild{Name: name})
		}
	}
	return known, nil
}
