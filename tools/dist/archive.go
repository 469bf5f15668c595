package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"time"
)

// archive writes a .tar.gz with one folder, which may be copied to /usr/local or anywhere else.
func (b *build) archive(t target, files []file) error {
	base := fmt.Sprintf("tuner_%s_%s_%s", b.version, t.os, t.arch)
	out, err := os.Create(b.name("%s.tar.gz", base))
	if err != nil {
		return err
	}
	zip, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	err = writeTar(zip, base+"/", files, b.time)
	return errors.Join(err, zip.Close(), out.Close())
}

// writeTar writes files and their folders, with names below prefix. They belong to root, but
// folders among the files belong to the user of the image.
func writeTar(w io.Writer, prefix string, files []file, modified time.Time) error {
	archive := tar.NewWriter(w)
	var folders []string
	for _, f := range files {
		for dir := path.Dir(prefix + f.name); dir != "."; dir = path.Dir(dir) {
			folders = append(folders, dir+"/")
		}
	}
	slices.Sort(folders)
	for _, dir := range slices.Compact(folders) {
		header := &tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755, ModTime: modified, Format: tar.FormatGNU}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
	}
	for _, f := range files {
		if f.mode.IsDir() {
			header := &tar.Header{Typeflag: tar.TypeDir, Name: prefix + f.name + "/", Mode: int64(f.mode.Perm()), Uid: userID, Gid: userID, ModTime: modified, Format: tar.FormatGNU}
			if err := archive.WriteHeader(header); err != nil {
				return err
			}
			continue
		}
		data, err := os.ReadFile(f.path)
		if err != nil {
			return err
		}
		header := &tar.Header{Name: prefix + f.name, Mode: int64(f.mode), Size: int64(len(data)), ModTime: modified, Format: tar.FormatGNU}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(data); err != nil {
			return err
		}
	}
	return archive.Close()
}
