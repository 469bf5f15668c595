// Package buildfacts says how this program was built, from what Go writes into it.
package buildfacts

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"strings"
)

// Version returns the version that results name: a release, or else the commit.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version := info.Main.Version
	if revision := setting(info, "vcs.revision"); revision != "" && (version == "" || version == "(devel)") {
		return revision[:min(12, len(revision))]
	}
	return cmp.Or(version, "devel")
}

// describe says how this program was built, one fact a line. Go writes
// the facts into the program. What it does not know has no line.
func describe(info *debug.BuildInfo) string {
	var facts strings.Builder
	fact := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&facts, "%-9s %s\n", name, value)
		}
	}
	commit := setting(info, "vcs.revision")
	if setting(info, "vcs.modified") == "true" {
		commit += ", with changes"
	}
	fact("commit", commit)
	fact("date", setting(info, "vcs.time"))
	fact("platform", setting(info, "GOOS")+"/"+setting(info, "GOARCH"))
	fact("go", info.GoVersion)
	fact("tags", setting(info, "-tags"))
	return facts.String()
}

func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// Text is the text of `tuner --version`.
func Text() string {
	text := "tuner version " + Version() + "\n"
	if info, ok := debug.ReadBuildInfo(); ok {
		text += describe(info)
	}
	return text
}
