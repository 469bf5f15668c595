package main

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// components returns the list of components in CycloneDX's JSON form: the modules that Go recorded in the binary, Go itself, and the
// ONNX Runtime below the prefix.
func (b *build) components(t target, binary, prefix string) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	var list []cyclonedx.Component
	add := func(kind cyclonedx.ComponentType, name, version, purl string) {
		list = append(list, cyclonedx.Component{BOMRef: purl, Type: kind, Name: name, Version: version, PackageURL: purl})
	}
	goVersion := strings.TrimPrefix(strings.Fields(info.GoVersion)[0], "go")
	add(cyclonedx.ComponentTypeLibrary, "std", goVersion, "pkg:golang/std@"+goVersion)
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		add(cyclonedx.ComponentTypeLibrary, m.Path, m.Version, fmt.Sprintf("pkg:golang/%s@%s", m.Path, m.Version))
	}
	runtimes, err := os.ReadDir(filepath.Join(prefix, "lib", "tuner", "runtimes"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a binary without the engine brings none
		return nil, err
	}
	for _, entry := range runtimes {
		_, version, _ := strings.Cut(entry.Name(), "@")
		add(cyclonedx.ComponentTypeLibrary, "onnxruntime", version, "pkg:pypi/onnxruntime@"+version)
	}
	bom := cyclonedx.NewBOM()
	purl := "pkg:generic/tuner@" + b.version + "?arch=" + t.arch + "&os=" + t.os
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: b.time.Format(time.RFC3339),
		Component: &cyclonedx.Component{BOMRef: purl, Type: cyclonedx.ComponentTypeApplication, Name: "tuner", Version: b.version, PackageURL: purl,
			Licenses: &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}}},
	}
	bom.Components = &list
	var text bytes.Buffer
	err = cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return text.Bytes(), err
}
