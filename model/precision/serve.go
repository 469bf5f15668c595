package precision

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"tuner/internal/durable"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
	"tuner/model/modelrepo"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/ort/provider"
	"tuner/runner"
)

// servingKind begins the name of a session's folder.
const servingKind = ".serving-"

// servedName is the model's name in the engines of an opener.
const servedName = "model"

// ServeOptions configure how an opener runs models.
type ServeOptions struct {
	Runner runner.Options // launcher, protocol, and time limit of loading
	// Library returns the ONNX Runtime library for an execution provider. An error has the reason
	// why it is missing, and counts as a refusal.
	Library func(provider string) (string, error)
	// Operators are the libraries with operators that the engine of the launcher opens
	Operators []string
	// Folder is the folder of models while an engine serves them. "" is UserCache, where models
	// from the cache need no additional space.
	Folder string
}

// NewOpener returns an opener whose sessions are separate engine processes.
func NewOpener(o ServeOptions) Opener { return server{o} }

type server struct{ options ServeOptions }

// Open implements Opener.
func (s server) Open(ctx context.Context, m *onnx.Model, of string) (Session, error) {
	library, err := s.options.Library(of)
	if err != nil {
		return nil, &RefusedError{err.Error()}
	}
	config, err := configure(m, of, s.options.Operators)
	if err != nil {
		return nil, &RefusedError{err.Error()}
	}
	folder, err := s.newFolder()
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder to serve models from: %w", err)
	}
	variant, err := writeRepository(folder.Dir, m, config)
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	inference, err := runner.OpenInference(ctx, s.options.Runner, runner.InferenceJob{Repository: variant.Dir, Library: library, Model: servedName})
	if err != nil {
		return nil, errors.Join(readable(refusal(err), folder.Dir), folder.Close())
	}
	return &session{inference, folder}, nil
}

// newFolder makes a folder for one session, and removes those that killed processes left.
func (s server) newFolder() (*durable.Scratch, error) {
	root := s.options.Folder
	if root == "" {
		var err error
		if root, err = UserCache(); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, err
	}
	durable.SweepScratch(root, newKind)
	return durable.NewScratch(root, servingKind)
}

// readable removes from a refusal what is only about the serving: the server's text around ONNX
// Runtime's message, and the paths of temporary files.
func readable(err error, folder string) error {
	var refused *RefusedError
	if !errors.As(err, &refused) {
		return err
	}
	reason := strings.TrimPrefix(refused.Reason, fmt.Sprintf("load failed for model '%s': version 1 is at UNAVAILABLE state: ", servedName))
	hidden := regexp.MustCompile(regexp.QuoteMeta(folder) + `[^\s:"']*`)
	return &RefusedError{hidden.ReplaceAllString(reason, "the file")}
}

// refusal turns an engine's failure into a *RefusedError.
func refusal(err error) error {
	var engine *runner.EngineError
	if errors.As(err, &engine) {
		return &RefusedError{engine.Error()}
	}
	return err
}

// configure makes the configuration that serves an unchanged model on one instance of the provider.
// The server does not batch, so requests have the shapes of the file. operators are libraries.
func configure(m *onnx.Model, of string, operators []string) (*modelconfig.Config, error) {
	var options modelconfig.Options
	group := &configpb.ModelInstanceGroup{Count: 1, Kind: options.UseProvider(of)}
	gpus := 0
	if provider.OnGPU(of) {
		group.Gpus, gpus = []int32{0}, 1
	}
	base := &modelconfig.Config{Name: servedName, Backend: modelconfig.Backend, InstanceGroup: []*configpb.ModelInstanceGroup{group}}
	if len(operators) > 0 {
		base.ModelOperations = &configpb.ModelOperations{OpLibraryFilename: operators}
	}
	io := signature(m)
	return modelconfig.Complete(modelconfig.SetORTOptions(base, options), modelconfig.CompleteOptions{
		DirName: servedName, HasModelFile: true, IO: &io, GPUs: gpus,
		DefaultMaxBatchSize: -1, // none
	})
}

// writeRepository makes a repository of a model in folder. It uses the model's own file if there is
// one, and else writes a new one.
func writeRepository(folder string, m *onnx.Model, config *modelconfig.Config) (modelrepo.Variant, error) {
	source := modelrepo.Source{Path: m.Path(), Digest: "served once"}
	for _, f := range m.ExternalFiles() {
		source.Data = append(source.Data, f.Path)
	}
	if source.Path == "" {
		source.Path, source.Data = filepath.Join(folder, modelName), nil
		if err := m.Write(source.Path, 0); err != nil {
			return modelrepo.Variant{}, err
		}
		data := source.Path + ".data" // see onnx.Model.Write
		if _, err := os.Stat(data); err == nil {
			source.Data = []string{data}
		}
	}
	variant, err := modelrepo.Build(filepath.Join(folder, "repository"), source, config)
	if err != nil {
		return modelrepo.Variant{}, fmt.Errorf("cannot serve the model: %w", err)
	}
	return variant, nil
}

// session is an engine process with its folder.
type session struct {
	inference *runner.Inference
	folder    *durable.Scratch
}

// Infer implements Session.
func (s *session) Infer(ctx context.Context, in map[string]inputs.Tensor) (map[string]inputs.Tensor, error) {
	list, err := s.inference.Infer(ctx, request(in))
	if err != nil {
		return nil, refusal(err)
	}
	return answer(list)
}

// Close implements Session. The next session removes the rest of the folder.
func (s *session) Close(ctx context.Context) {
	s.inference.Close(ctx)
	_ = s.folder.Close()
}

// UserCache returns the folder of variants in the user's cache: below TUNER_CACHE, or else "tuner"
// in the system's cache folder.
func UserCache() (string, error) {
	if dir := os.Getenv("TUNER_CACHE"); dir != "" {
		return filepath.Join(dir, "precision"), nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cannot find your cache folder: %w; set TUNER_CACHE", durable.Cause(err))
	}
	return filepath.Join(dir, "tuner", "precision"), nil
}
