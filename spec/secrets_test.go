package spec_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/alloctest"
	"tuner/spec"
	"tuner/spec/secrets"
)

const secretProfile = `# A server that asks who calls.
model: m.onnx
runner:
  mode: remote
  url: grpcs://host:8001
  metrics_url: http://user:s3cret@host:8002/metrics?token=s3cret
  headers: {authorization: "Bearer s3cret", x-model: s3cret, x-key: $KEY, x-token: "Bearer ${TOKEN}", x-both: s3cret$KEY}
finals:
  runner: # the same program here
    mode: local
    args: [--backend-directory=b, --grpc-restricted-protocol=inference:s3cret=s3cret, --api-key=s3cret, --verbose, --auth-token, s3cret, --password, --log-info, 1]
    environment: {OMP_NUM_THREADS: 4, API_KEY: s3cret, aws_secret_access_key: s3cret, EMPTY_TOKEN: ""}
objective: throughput
`

func TestWithoutSecrets(t *testing.T) {
	t.Parallel()
	p, err := spec.ParseProfile("p.yaml", []byte(secretProfile))
	if err != nil {
		t.Fatal(err)
	}
	text := secrets.Without(p.Text)
	for _, kept := range []string{"# A server that asks", "$KEY", "${TOKEN}", "grpcs://host:8001", "://[hidden]@host:8002/metrics?[hidden]", "OMP_NUM_THREADS: 4",
		"--api-key=[hidden]", "--backend-directory=b", "--verbose", `--auth-token, "[hidden]", --password, --log-info, 1]`} {
		if !strings.Contains(string(text), kept) {
			t.Errorf("%q is gone of:\n%s", kept, text)
		}
	}
	if strings.Contains(string(text), "s3cret") {
		t.Errorf("a secret is left in:\n%s", text)
	}
	if again := secrets.Without(text); string(again) != string(text) {
		t.Error("what has no secrets is changed:\n" + cmp.Diff(string(text), string(again)))
	}
	recorded, err := spec.RecordedProfile("p.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	for _, pair := range [][2]spec.Runner{{p.Runner, recorded.Runner}, {*p.Finals, *recorded.Finals}} {
		if a, b := pair[0].WithoutSecrets(), pair[1].WithoutSecrets(); !reflect.DeepEqual(a.Args, b.Args) || !reflect.DeepEqual(a.Environment, b.Environment) {
			t.Errorf("recorded are %v and %v of %v and %v", b.Args, b.Environment, a.Args, a.Environment)
		}
	}
	if got := recorded.Finals.Environment["OMP_NUM_THREADS"]; got != "4" {
		t.Errorf("the number of threads is recorded as %q", got)
	}
}

// A profile without secrets, and a text that is no profile, do not change.
func TestWithoutSecretsLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "{", "[1, 2]", "model:   m.onnx # here\n", "model: m.onnx\nrunner:   {mode: bundled}\n", "runner: [a]\nfinals: 3\n",
		"model: m.onnx\nrunner: {mode: remote, url: 'h:1',   headers: {a: $B}, metrics_url: h/metrics}\n",
		"model: m.onnx\nrunner: {mode: local, args: [--a=b],   environment: {OMP_NUM_THREADS: 4}}\n",
	} {
		if got := string(secrets.Without([]byte(text))); got != text {
			t.Errorf("%q is kept as %q", text, got)
		}
	}
}

// An anchor's text is hidden if it is used as a secret.
func TestWithoutSecretsOfAliases(t *testing.T) {
	t.Parallel()
	args := "model: m.onnx\nrunner: {mode: local, args: [--api-key, &s s3cret, *s]}\n"
	if got := string(secrets.Without([]byte(args))); strings.Contains(got, "s3cret") {
		t.Errorf("kept is %q", got)
	}
	text := "model: m.onnx\nrunner: {mode: remote, url: 'h:1', headers: &h {a: &s s3cret}}\nfinals: {runner: {mode: remote, url: 'i:1', headers: *h}}\n"
	if got := string(secrets.Without([]byte(text))); strings.Contains(got, "s3cret") {
		t.Errorf("kept is %q", got)
	}
}

// Credentials in a server's address would be stored with the address.
func TestAddressTakesNoCredentials(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"user@host:8001", "grpc://user:pass@host:8001", "https://user@host"} {
		if address, _, err := (spec.Runner{URL: url}).Address(); err == nil {
			t.Errorf("%s is taken as %s", url, address)
		}
	}
}

func FuzzWithoutSecrets(f *testing.F) {
	f.Add(secretProfile)
	f.Add("runner: {headers: {a: b}}")
	f.Add("runner: &r {headers: *r}\n")
	f.Fuzz(func(t *testing.T, text string) {
		defer alloctest.Bound(t, len(text))()
		if _, err := spec.RecordedProfile("p.yaml", []byte(text)); err != nil {
			return
		}
		hidden := secrets.Without([]byte(text))
		if _, err := spec.RecordedProfile("p.yaml", hidden); err != nil {
			t.Fatalf("it does not parse any more: %v\n%s", err, hidden)
		}
		if again := secrets.Without(hidden); string(again) != string(hidden) {
			t.Fatalf("hidden once:\n%s\ntwice:\n%s", hidden, again)
		}
	})
}

// A single argument may stand without a list.
func TestWithoutSecretsOfOneArgument(t *testing.T) {
	t.Parallel()
	text := "model: m.onnx\nrunner: {mode: local, args: --api-key=s3cret}\n"
	if got := string(secrets.Without([]byte(text))); strings.Contains(got, "s3cret") || !strings.Contains(got, "--api-key=[hidden]") {
		t.Errorf("kept as %q", got)
	}
}
