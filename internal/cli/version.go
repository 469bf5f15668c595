package cli

import "runtime/debug"

// toolVersion names this build: the module's version, or its commit.
func toolVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (version == "" || version == "(devel)") {
			return s.Value[:min(12, len(s.Value))]
		}
	}
	if version == "" {
		return "devel"
	}
	return version
}
