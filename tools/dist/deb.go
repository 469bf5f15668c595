package main

import (
	"errors"
	"os"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
)

// deb writes a Debian package, with the tree below /usr.
func (b *build) deb(t target, tree []file) error {
	var contents files.Contents
	for _, f := range tree {
		// Debian's place for completion that packages bring
		name := strings.Replace(f.name, "share/zsh/site-functions/", "share/zsh/vendor-completions/", 1)
		contents = append(contents, &files.Content{Source: f.path, Destination: "/usr/" + name,
			FileInfo: &files.ContentFileInfo{Mode: f.mode, MTime: b.time, Owner: "root", Group: "root"}})
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "tuner", Arch: t.arch, Platform: "linux", Version: strings.Replace(b.version, "-", "~", 1), VersionSchema: "none",
		Section: "utils", Priority: "optional", Maintainer: "The tuner project", License: "Apache-2.0", MTime: b.time,
		Description: "Finds the best way to serve an ONNX model on a machine",
		Overridables: nfpm.Overridables{
			Depends: []string{"libc6 (>= 2.28)", "libstdc++6", "libgcc-s1"}, Recommends: []string{"ca-certificates"},
			Contents: contents,
		},
	})
	if err := nfpm.PrepareForPackager(info, "deb"); err != nil {
		return err
	}
	out, err := os.Create(b.name("tuner_%s_%s.deb", b.version, t.arch))
	if err != nil {
		return err
	}
	return errors.Join(deb.Default.Package(info, out), out.Close())
}
