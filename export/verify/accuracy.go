package verify

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"

	"tuner/export"
	"tuner/internal/durable"
	"tuner/internal/words"
	"tuner/model/modelconfig"
	"tuner/model/modelrepo"
	"tuner/model/onnx"
	"tuner/model/precision"
	"tuner/model/precision/recipe"
	"tuner/ort/addon"
	"tuner/profile"
	"tuner/profile/campaign"
)

// Judge compares exported models with the originals of their campaigns. Its method Check is an
// Accuracy.
type Judge struct {
	Input string // the campaign's folder, instead of the manifest's
	// Libraries that the opener's engine opens beside ONNX Runtime
	Libraries addon.Libraries
	// Open returns an opener for the build that serves a model here, and the name of the build.
	Open func(m export.ManifestModel) (opener precision.Opener, build string, err error)
}

// sameFigure is the allowed difference from the reported cosine on the same data, since builds
// round differently.
const sameFigure = 1e-3

// Check compares a model's outputs with those of the original. A model without an ONNX file has the same files as
// the original.
func (j Judge) Check(ctx context.Context, m export.ManifestModel, file string) (Status, string, error) {
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return checkFiles(m, file)
	}
	exported, err := onnx.Read(file)
	if err != nil {
		return Failed, err.Error(), nil
	}
	digest, err := exported.Digest()
	switch {
	case err != nil:
		return "", "", err
	case digest != m.SHA256:
		return Failed, fmt.Sprintf("the model is not the one that was measured: its digest is %s, and was %s", digest, m.SHA256), nil
	case m.Cosine == nil && m.Precision == recipe.Original:
		return Passed, "the model is the one that was measured, in its original precision", nil
	}
	c, err := readCampaign(m, j.Input)
	if err != nil {
		return "", "", err
	}
	if c == nil {
		return Skipped, fmt.Sprintf("no campaign in %q to compare with: name its folder with --input", m.Input), nil
	}
	if m.Cosine == nil && c.Header.Data == "" {
		return Skipped, "the campaign did not compare the outputs with the original's", nil
	}
	return j.compare(ctx, m, *c, exported)
}

// checkFiles compares the files of a model without an ONNX file with those that were measured.
func checkFiles(m export.ManifestModel, folder string) (Status, string, error) {
	source, err := modelrepo.Folder(folder)
	switch {
	case err != nil:
		return "", "", err
	case source.Digest != m.SHA256:
		return Failed, fmt.Sprintf("its files are not those that were measured: their digest is %s, and was %s", source.Digest, m.SHA256), nil
	}
	return Passed, "its files are those that were measured", nil
}

// compare runs the original and the exported model on the campaign's data.
func (j Judge) compare(ctx context.Context, m export.ManifestModel, c campaign.Campaign, exported *onnx.Model) (Status, string, error) {
	source := c.Header.Models[0]
	original, err := onnx.Read(source.Path)
	if err != nil {
		return Skipped, fmt.Sprintf("the original is gone: %v", err), nil
	}
	if digest, err := original.Digest(); err != nil || digest != source.SHA256 {
		return Skipped, fmt.Sprintf("the original %q changed since the campaign", source.Path), err
	}
	base, err := modelconfig.Parse("base_config of the journal", []byte(c.Header.BaseConfig))
	if err != nil {
		return "", "", err
	}
	rows, reason, err := readRows(c, original)
	if err != nil || reason != "" {
		return Skipped, reason, err
	}
	subject := profile.Subject{Name: m.Name, Model: original, Config: base, Rows: rows}
	if c.Header.Mix != nil {
		subject.Mix = c.Header.Mix.Kinds
	}
	data, calibration, err := profile.Data(c.Profile, subject)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Skipped, fmt.Sprintf("the data of the campaign's comparison are gone: %v", err), nil
	case err != nil:
		return "", "", err
	case c.Header.Data != "" && data.Digest() != c.Header.Data:
		return Skipped, fmt.Sprintf("the data of the campaign's comparison (%s) have changed", data.Name), nil
	}
	cache, err := durable.NewScratch("", "tuner-verify-") // ignores the campaign's comparisons in the user's cache
	if err != nil {
		return "", "", fmt.Errorf("cannot make a folder for the comparison: %w", err)
	}
	defer cache.Close() // what stays is removed by the next one
	opener, build, err := j.Open(m)
	if err != nil {
		return "", "", err
	}
	maker, err := precision.NewMaker(original, opener, precision.Options{
		Data: data, Calibration: calibration, Limit: c.Profile.Accuracy.Limit, MaxKept: c.Profile.Accuracy.MaxKept, Cache: cache.Dir, Tool: build, KeepIO: true,
		Libraries: j.Libraries,
	})
	if err != nil {
		return "", "", err
	}
	v, err := maker.Check(ctx, m.Precision, exported, []string{m.Provider})
	if err != nil {
		return "", "", err
	}
	if reason := v.Rejected[m.Provider]; reason != "" {
		return Failed, reason, nil
	}
	return sameAccuracy(v, m.Provider, m.Cosine)
}

// sameAccuracy compares the lowest mean cosine of outputs that keep the campaign's limit with the
// reported one; nil: no output has one.
func sameAccuracy(v precision.Variant, provider string, reported *float64) (Status, string, error) {
	report, ok := v.Accuracy[provider]
	if !ok {
		return Skipped, "this model on this provider is the one that all others are compared with", nil
	}
	rows := words.Count(report.Rows, "row")
	if reported == nil {
		return Passed, "the outputs keep the campaign's limit of accuracy on " + rows, nil
	}
	now, ok := report.LeastCosine()
	if !ok {
		now = math.Inf(1) // fails without a cosine
	}
	text := fmt.Sprintf("cosine %.6g with the original on %s; reported %.6g", now, rows, *reported)
	if math.Abs(now-*reported) > sameFigure {
		return Failed, text, nil
	}
	return Passed, text, nil
}
