package deployment

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// load reads a project like Docker Compose.
func load(t *testing.T, dir string) (*types.Project, error) {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{filepath.Join(dir, "compose.yaml")}, cli.WithWorkingDirectory(dir))
	if err != nil {
		t.Fatal(err)
	}
	return options.LoadProject(t.Context())
}

func TestCompose(t *testing.T) {
	for name, args := range map[string][]string{"as measured": nil, "GPUs": {"--gpus", "2"}, "explicit": {"--model-control-mode", "explicit"}} {
		t.Run(name, func(t *testing.T) {
			dir := export(t, "compose", args...)
			project, err := load(t, dir)
			if err != nil {
				t.Fatal(err)
			}
			triton, err := project.GetService("triton")
			if err != nil || triton.Deploy == nil || triton.Deploy.Resources.Limits == nil || triton.Deploy.Resources.Limits.MemoryBytes == 0 {
				t.Errorf("no Triton with limits: %v", err)
			}
			if name == "GPUs" && (triton.Deploy.Resources.Reservations == nil || triton.Deploy.Resources.Reservations.Devices[0].Count != 2) {
				t.Errorf("no two GPUs: %+v", triton.Deploy.Resources.Reservations)
			}
		})
	}
	dir := export(t, "compose")
	path := filepath.Join(dir, "compose.yaml")
	write(t, path, bytes.Replace(read(t, path), []byte("healthcheck:"), []byte("healtcheck:"), 1))
	if _, err := load(t, dir); err == nil {
		t.Error("a misspelt key is accepted")
	}
}
