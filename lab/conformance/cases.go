package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
)

// Case is one request of a file of requests.
//
// A file is a txtar archive. Each section is a request, and they are made in order. A section is a
// request line, for HTTP the headers and an empty line, then the message. The request line is an
// HTTP method and a path, or the name of a gRPC method. A gRPC message is in protobuf's text form.
//
// A line "---" separates the JSON from the binary tensors of an HTTP request, and the messages of a
// gRPC stream. <<…>> is an expression of package text/template (functions, below). It writes data
// that would be tedious or impossible to write as text.
type Case struct {
	Name    string // file, without its extension, and section: "infer/sum of two tensors"
	Verb    string // HTTP method; empty for gRPC
	Target  string // HTTP path, or gRPC method
	Headers []Header
	Parts   []string
}

// Header is a header of an HTTP request.
type Header struct{ Key, Value string }

// separator is the line between the parts of a message.
const separator = "---\n"

// Endpoint returns the part of Triton's API that the case uses: an HTTP path without the names of
// models and versions, or a gRPC method.
func (c Case) Endpoint() string {
	if c.Verb == "" {
		return c.Target
	}
	path, _, _ := strings.Cut(c.Target, "?")
	parts := strings.Split(path, "/")
	for i := 1; i < len(parts); i++ {
		switch parts[i-1] {
		case "models":
			if parts[i] != "stats" {
				parts[i] = "M"
			}
		case "versions":
			parts[i] = "V"
		}
	}
	return strings.Replace(strings.Join(parts, "/"), "/versions/V", "", 1)
}

// Settles reports whether the case asks for a state that changes after the answer: Triton unloads
// and counts after it has answered.
func (c Case) Settles() bool {
	endpoint := strings.ToLower(c.Endpoint())
	return slices.ContainsFunc([]string{"ready", "index", "stats", "statistics"}, func(what string) bool {
		return strings.HasSuffix(endpoint, what)
	})
}

// ReadCases reads the files of requests of a folder, in the order of their names.
func ReadCases(folder string) ([]Case, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.txtar"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	var cases []Case
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read requests: %w", err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		for _, section := range txtar.Parse(data).Files {
			c, err := parseCase(string(section.Data))
			if err != nil {
				return nil, fmt.Errorf("cannot read request %q of %s: %w", section.Name, file, err)
			}
			c.Name = name + "/" + section.Name
			cases = append(cases, c)
		}
	}
	if len(cases) == 0 {
		return nil, fmt.Errorf("no requests in %s", folder)
	}
	return cases, nil
}

// LoadCases returns TestLoad's requests for a model: its load, and queries of its state.
func LoadCases(m Model) []Case {
	var cases []Case
	for _, step := range []struct{ name, verb, path string }{
		{"load", "POST", "/v2/repository/models/%s/load"},
		{"ready", "GET", "/v2/models/%s/ready"},
		{"configuration", "GET", "/v2/models/%s/config"},
		{"metadata", "GET", "/v2/models/%s"},
	} {
		cases = append(cases, Case{
			Name: "load/" + m.Name + "/" + step.name, Verb: step.verb, Target: fmt.Sprintf(step.path, m.Name), Parts: []string{""},
		})
	}
	return cases
}

// indexCase returns the name of the comparison of the model's index entry after its load.
func indexCase(m Model) string { return "load/" + m.Name + "/index" }

// parseCase reads one section.
func parseCase(text string) (Case, error) {
	line, rest, _ := strings.Cut(text, "\n")
	words := strings.Fields(line)
	switch {
	case len(words) == 1:
		c := Case{Target: words[0]}
		return c, c.setParts(rest)
	case len(words) == 2 && strings.HasPrefix(words[1], "/"):
		c := Case{Verb: words[0], Target: words[1]}
		for line != "" {
			line, rest, _ = strings.Cut(rest, "\n")
			if key, value, found := strings.Cut(line, ":"); found {
				c.Headers = append(c.Headers, Header{key, strings.TrimSpace(value)})
			} else if line != "" {
				return Case{}, fmt.Errorf("%q is not a header", line)
			}
		}
		return c, c.setParts(rest)
	default:
		return Case{}, fmt.Errorf("%q is neither an HTTP method and a path nor a gRPC method", line)
	}
}

// setParts evaluates the message. The line breaks before a separator and at the end belong to the
// file, not to the message.
func (c *Case) setParts(text string) error {
	text = strings.TrimRight(text, "\n") // the empty line between sections
	for part := range strings.SplitSeq(text, "\n"+separator) {
		part, err := expand(strings.TrimSuffix(part, "\n"))
		if err != nil {
			return err
		}
		c.Parts = append(c.Parts, part)
	}
	return nil
}
