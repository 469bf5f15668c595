package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tuner/lab/peers"
	"tuner/model/modelconfig"
	"tuner/model/modelrepo"
	"tuner/model/onnx"
)

// repository makes a repository of one ONNX model with a configuration that has its name.
func (b *bench) repository(file, config string) (string, error) {
	c, err := modelconfig.Parse("config.pbtxt", []byte(config))
	if err != nil {
		return "", err
	}
	path := filepath.Join(b.models, file)
	m, err := onnx.Read(path)
	if err != nil {
		return "", err
	}
	digest, err := m.Digest()
	if err != nil {
		return "", err
	}
	v, err := modelrepo.Build(b.work, modelrepo.Source{Path: path, Digest: digest}, c)
	return v.Dir, err
}

// The files of MiniLM, in the folder of the sample models.
const (
	fileFP32 = "minilm.onnx"
	fileInt8 = "minilm_int8.onnx"
)

// quantized makes the int8 variant of MiniLM if it does not exist.
func (b *bench) quantized(ctx context.Context) error {
	path := filepath.Join(b.models, fileInt8)
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	made := filepath.Join(b.work, fileInt8)
	if err := b.peers.Quantize(ctx, filepath.Join(b.models, fileFP32), made); err != nil {
		return err
	}
	return os.Rename(made, path)
}

//go:embed testdata/addsub_backend.c
var addSubBackend []byte

// addSubRepository makes a repository for Triton with a model that adds and subtracts in C.
func (b *bench) addSubRepository(ctx context.Context) (string, error) {
	const backend = "addsub"
	dir := filepath.Join(b.work, "triton_addsub")
	folder := filepath.Join(dir, simple)
	if err := os.MkdirAll(filepath.Join(folder, "1"), 0o755); err != nil {
		return "", fmt.Errorf("cannot make a repository: %w", err)
	}
	source := filepath.Join(b.work, backend+".c")
	for path, text := range map[string][]byte{
		source: addSubBackend, filepath.Join(folder, "config.pbtxt"): []byte(simpleConfig(backend)),
	} {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return "", fmt.Errorf("cannot make a repository: %w", err)
		}
	}
	return dir, peers.CompileBackend(ctx, source, folder, backend)
}
