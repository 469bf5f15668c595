package export

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// podman is a target of this test only. Everything about it is here, as in a file of its own.
func podman() target {
	return target{
		name: "podman", about: "a script that runs Podman", isOneServer: true,
		readme: `{{define "target"}}## Run it

{{range .Commands}}    {{.}}
{{end}}{{end}}`,
		commands: func(d Deployment) []string { return []string{"sh " + d.Name + ".sh"} },
		files: func(d Deployment) written {
			script := fmt.Sprintf("exec podman run --cpus %d -v ./%s:%s:ro %s\n", d.CPUs, d.repository(), modelsMount, d.Image)
			return written{files: []file{{d.Name + ".sh", []byte(script)}}}
		},
	}
}

// A new target is a function in its own file and a row in targets. Files, README, export.json,
// commands, notes and help follow from the row. docs/how-to/add-an-export-target.md describes these
// steps.
func TestAddATarget(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "deploy")
	o := defaults(analyzed(t))
	o.Replicas = 2
	e, err := write(podman(), out, o)
	if err != nil {
		t.Fatal(err)
	}
	wantFiles := []string{"model_repository/minilm", "minilm.sh", "README.md", ManifestName}
	if !slices.Equal(e.Files, wantFiles) || !slices.Equal(e.Next, []string{"sh minilm.sh"}) {
		t.Errorf("files %v, next %v; want %v", e.Files, e.Next, wantFiles)
	}
	for name, wants := range map[string][]string{
		"minilm.sh":                            {"exec podman run --cpus 2 -v ./model_repository:/models:ro " + DefaultImage},
		"README.md":                            {"Written by `tuner export podman`", "## Run it", "    sh minilm.sh", "The target podman is one server"},
		ManifestName:                           {`"target": "podman"`},
		"model_repository/minilm/config.pbtxt": {`name: "minilm"`},
	} {
		text, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: %q is not in\n%s", name, want, text)
			}
		}
	}
	if help := helpOf(append(targets(), podman())); !strings.HasSuffix(help, "azureml: an online endpoint. podman: a script that runs Podman.") {
		t.Errorf("the help says %q", help)
	}
	for option, change := range map[string]func(*Options){
		"--storage":       func(o *Options) { o.Storage = "s3://models/minilm" },
		"--instance-type": func(o *Options) { o.InstanceType = "Standard_D4as_v4" },
		"--gpu-resource":  func(o *Options) { o.GPUResource = "nvidia.com/mig-1g.5gb" },
	} {
		o := defaults(o.Inputs...)
		change(&o)
		if _, err := write(podman(), out+"-2", o); err == nil || !strings.Contains(err.Error(), option) || !strings.Contains(err.Error(), "podman") {
			t.Errorf("%s: error %v", option, err)
		}
	}
}

// Every target sets all fields that the export needs.
func TestTargetsAreComplete(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../docs/reference/export.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range targets() {
		if target.about == "" || target.readme == "" || target.commands == nil {
			t.Errorf("%s lacks a line of help, a README or commands", target.name)
		}
		if !strings.Contains(string(doc), "`"+target.name+"`") {
			t.Errorf("docs/reference/export.md does not mention `%s`", target.name)
		}
	}
}
