package objects

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// environment returns a getenv with these variables alone.
func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Location{
		"s3://bucket":                            {Scheme: S3, Bucket: "bucket", text: "s3://bucket"},
		"s3://bucket/a//b/":                      {Scheme: S3, Bucket: "bucket", Prefix: "a/b/", text: "s3://bucket/a/b"},
		"s3://localhost:9000/bucket/a":           {Scheme: S3, Endpoint: "localhost:9000", Bucket: "bucket", Prefix: "a/", text: "s3://localhost:9000/bucket/a"},
		"s3://http://10.0.0.1:9000/bucket":       {Scheme: S3, Endpoint: "10.0.0.1:9000", Bucket: "bucket", text: "s3://http://10.0.0.1:9000/bucket"},
		"s3://https://minio.local:443/bucket/a":  {Scheme: S3, Endpoint: "minio.local:443", IsSecure: true, Bucket: "bucket", Prefix: "a/", text: "s3://https://minio.local:443/bucket/a"},
		"gs://bucket/a/b":                        {Scheme: Google, Bucket: "bucket", Prefix: "a/b/", text: "gs://bucket/a/b"},
		"as://account/container/a":               {Scheme: Azure, Account: "account", Bucket: "container", Prefix: "a/", text: "as://account/container/a"},
		"as://acct.blob.core.windows.net/box/a/": {Scheme: Azure, Account: "acct", Bucket: "box", Prefix: "a/", text: "as://acct/box/a"},
	} {
		got, err := Parse(text)
		if err != nil || got != want || !IsRemote(text) {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"s3://":                                 "it names no bucket",
		"s3:///":                                "it names no bucket",
		"s3://https://host/bucket":              `"https:" is no bucket`,
		"s3://localhost:9000/":                  `"localhost:9000" is no bucket`,
		"s3://bucket/../other":                  `".." cannot be a part of a path`,
		"s3://bucket/a\x00b":                    "names of files must not have",
		"s3://key:secret@host:1/bucket":         "an address has no user",
		"as://account":                          "it names no bucket",
		"as://ac.count/box":                     `"ac.count" is no account`,
		"as://account/box?sig=secret":           "an address has no user, query",
		"gs://b/" + strings.Repeat("x/", 4<<10): "it has more than 4096 bytes",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") || len(err.Error()) > 1000 {
			t.Errorf("%.50q: got %v, want %q", text, err, want)
		}
	}
	for _, folder := range []string{"/models", "models", "file:///x", "http://x", "", "s3:/x"} {
		if IsRemote(folder) {
			t.Errorf("%q is no address", folder)
		}
	}
}

// Whatever an address or a key is, the parts of a location and of a path stay inside of a folder.
func FuzzPath(f *testing.F) {
	f.Add("s3://bucket/a/b", "a/b/m/1/model.onnx")
	f.Add("s3://https://h:1/b/..", "a/../x")
	f.Add("as://a/b/c", "/etc/passwd")
	f.Fuzz(func(t *testing.T, address, key string) {
		l, err := Parse(address)
		if err != nil {
			return
		}
		if again, err := Parse(l.String()); err != nil || again != l {
			t.Errorf("%q: %+v, then %+v, %v", address, l, again, err)
		}
		path, err := Path(key, l.Prefix)
		if err != nil || path == "" {
			return
		}
		inside := strings.TrimSuffix(path, "/")
		if clean := filepath.ToSlash(filepath.Clean(filepath.FromSlash(inside))); clean != inside || !filepath.IsLocal(inside) || l.Prefix+path != key || len(path) > longestKey {
			t.Errorf("%q below %q: path %q", key, l.Prefix, path)
		}
	})
}

// The longest beginning of the address in the file counts, and the file before variables.
func TestCredentials(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "credentials.json")
	if err := os.WriteFile(path, []byte(`{
		"s3": {"": {"key_id": "all", "secret_key": "1"}, "s3://bucket": {"key_id": "bucket", "secret_key": "2", "region": "r"}, "s3://bucket/deep": {"key_id": "deep"}},
		"gs": {"gs://mine": "/key.json"}, "as": {"": {"account_str": "a", "account_key": "k"}}, "other": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	env := environment(credentialFile, path, "AWS_ACCESS_KEY_ID", "variable", "AWS_SECRET_ACCESS_KEY", "s")
	for address, want := range map[string]credentials{
		"s3://else":          {KeyID: "all", Secret: "1"},
		"s3://bucket/x":      {KeyID: "bucket", Secret: "2", Region: "r"},
		"s3://bucket/deep/x": {KeyID: "deep"},
		"gs://mine/x":        {path: "/key.json"},
		"as://b/c":           {Account: "a", Key: "k"},
	} {
		l, err := Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := credentialsOf(l, env); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", address, got, err, want)
		}
	}
	l, _ := Parse("gs://yours")
	if _, err := credentialsOf(l, env); err == nil || !strings.Contains(err.Error(), "cannot match credential for path gs://yours") {
		t.Errorf("without any: got %v", err)
	}
	l, _ = Parse("s3://bucket")
	got, err := credentialsOf(l, environment("AWS_ACCESS_KEY_ID", "variable", "AWS_SECRET_ACCESS_KEY", "s", "AWS_REGION", "r", "AWS_SESSION_TOKEN", "t"))
	if want := (credentials{KeyID: "variable", Secret: "s", Region: "r", Session: "t"}); err != nil || got != want {
		t.Errorf("variables: got %+v, %v, want %+v", got, err, want)
	}
}

// No error about credentials has any.
func TestCredentialsStayOutOfErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.json")
	if err := os.WriteFile(broken, []byte(`{"s3": {"": {"secret_key": "hushhush", "key_id": 7}}, "type": "hushhush"`), 0o600); err != nil {
		t.Fatal(err)
	}
	program, half := filepath.Join(dir, "program.json"), filepath.Join(dir, "half.json")
	if err := errors.Join(os.WriteFile(program, []byte(`{"type": "external_account", "credential_source": {"executable": {"command": "/bin/hushhush"}}}`), 0o600),
		os.WriteFile(half, []byte(`{"type": "service_account", "private_key": ["hushhush"]}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		address string
		env     func(string) string
	}{
		"a file that is no JSON":   {"s3://b", environment(credentialFile, broken)},
		"a file that is missing":   {"s3://b", environment(credentialFile, filepath.Join(dir, "none"))},
		"a folder":                 {"s3://b", environment(credentialFile, dir)},
		"no key of Google's":       {"gs://b", environment("GOOGLE_APPLICATION_CREDENTIALS", broken)},
		"a file of Google's":       {"gs://b", environment("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(dir, "none"))},
		"a program of Google's":    {"gs://b", environment("GOOGLE_APPLICATION_CREDENTIALS", program)},
		"half a key of Google's":   {"gs://b", environment("GOOGLE_APPLICATION_CREDENTIALS", half)},
		"no key of Azure's":        {"as://a/b", environment("AZURE_STORAGE_KEY", "hushhush!")},
		"another identity":         {"as://a/b", environment("AZURE_STORAGE_AUTH_TYPE", "managed_identity")},
		"no connection of Azure's": {"as://a/b", environment(connectionString, "AccountKey=hushhush;nonsense")},
	} {
		l, err := Parse(c.address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), l, c.env); err == nil || strings.Contains(err.Error(), "hushhush") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// listed returns the keys of a list, in order.
func listed(t *testing.T, s Store, prefix string, flat bool) (keys []string, all map[string]Object) {
	t.Helper()
	all = map[string]Object{}
	for o, err := range s.List(t.Context(), prefix, flat) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, o.Key)
		all[o.Key] = o
	}
	slices.Sort(keys)
	return keys, all
}

func content(ctx context.Context, s Store, o Object) (string, error) {
	r, err := s.Read(ctx, o)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(r)
	return string(text), errors.Join(err, r.Close())
}

// S3 by a server that speaks its protocol.
func TestS3(t *testing.T) {
	t.Parallel()
	backend := s3mem.New()
	web := httptest.NewServer(gofakes3.New(backend).Server())
	defer web.Close()
	if err := backend.CreateBucket("bucket"); err != nil {
		t.Fatal(err)
	}
	put := func(key, text string) {
		if _, err := backend.PutObject("bucket", key, map[string]string{"Last-Modified": "Fri, 27 Nov 2026 04:00:00 GMT"}, strings.NewReader(text), int64(len(text)), nil); err != nil {
			t.Fatal(err)
		}
	}
	put("repo/m/1/model.onnx", "weights")
	put("repo/m/config.pbtxt", "")
	put("repo/x", "beside")
	put("else", "not below")
	l, err := Parse("s3://" + strings.TrimPrefix(web.URL, "http://") + "/bucket/repo")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), l, environment("AWS_ACCESS_KEY_ID", "id", "AWS_SECRET_ACCESS_KEY", "hushhush"))
	if err != nil {
		t.Fatal(err)
	}
	check(t, s, l.Prefix, func() { put("repo/m/1/model.onnx", "changed") })
	l.Bucket = "missing"
	s, err = Open(t.Context(), l, environment("AWS_ACCESS_KEY_ID", "id", "AWS_SECRET_ACCESS_KEY", "hushhush"))
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range s.List(t.Context(), "", true) {
		if err == nil || strings.Contains(err.Error(), "hushhush") {
			t.Errorf("a bucket that is missing: got %v", err)
		}
	}
}

// The variable that forbids the machine's metadata service leaves the roles of pods and tasks.
func TestRoles(t *testing.T) {
	t.Parallel()
	const off = "AWS_EC2_METADATA_DISABLED"
	for _, c := range []struct {
		env  []string
		want bool
	}{
		{nil, true}, {[]string{off, "false"}, true}, {[]string{off, "true"}, false}, {[]string{off, "TRUE"}, false},
		{[]string{off, "true", "AWS_WEB_IDENTITY_TOKEN_FILE", "/token", "AWS_ROLE_ARN", "arn"}, true},
		{[]string{off, "true", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2"}, true},
		{[]string{off, "true", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://localhost"}, true},
	} {
		if got := mayHaveRole(environment(c.env...)); got != c.want {
			t.Errorf("%q: got %v, want %v", c.env, got, c.want)
		}
	}
}

// The credentials of a task, which a server beside it has. It reads the process's own environment.
func TestRoleOfTask(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"AccessKeyId": "task", "SecretAccessKey": "hushhush", "Token": "t", "Expiration": "2999-01-01T00:00:00Z"}`)
	}))
	defer web.Close()
	for name, value := range map[string]string{
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONTAINER_CREDENTIALS_FULL_URI": web.URL, "AWS_SHARED_CREDENTIALS_FILE": filepath.Join(t.TempDir(), "none"),
		"AWS_WEB_IDENTITY_TOKEN_FILE": "", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "",
	} {
		t.Setenv(name, value)
	}
	l, err := Parse("s3://bucket")
	if err != nil {
		t.Fatal(err)
	}
	got, err := identityS3(l, credentials{}, os.Getenv).GetWithContext(nil)
	if err != nil || got.AccessKeyID != "task" || got.SessionToken != "t" {
		t.Errorf("got %+v, %v; want the credentials of the task", got, err)
	}
}

// check compares the lists and objects of a store with those of the tests. change changes
// m/1/model.onnx.
func check(t *testing.T, s Store, prefix string, change func()) {
	t.Helper()
	keys, all := listed(t, s, prefix, true)
	if d := cmp.Diff([]string{prefix + "m/1/model.onnx", prefix + "m/config.pbtxt", prefix + "x"}, keys); d != "" {
		t.Errorf("all (-want +got):\n%s", d)
	}
	if keys, _ := listed(t, s, prefix, false); !slices.Equal(keys, []string{prefix + "m/", prefix + "x"}) {
		t.Errorf("one level: %q", keys)
	}
	if keys, _ := listed(t, s, prefix+"none/", true); len(keys) > 0 {
		t.Errorf("below no prefix: %q", keys)
	}
	model := all[prefix+"m/1/model.onnx"]
	if text, err := content(t.Context(), s, model); err != nil || text != "weights" || model.Size != 7 || model.Tag == "" {
		t.Errorf("got %q, %v of %+v", text, err, model)
	}
	if text, err := content(t.Context(), s, all[prefix+"m/config.pbtxt"]); err != nil || text != "" {
		t.Errorf("an empty object: %q, %v", text, err)
	}
	change()
	if text, err := content(t.Context(), s, model); err == nil {
		t.Errorf("the object that was listed is gone: got %q", text)
	}
	if _, now := listed(t, s, prefix, true); now[model.Key].Tag == model.Tag {
		t.Error("a changed object has the tag of before")
	}
	for range s.List(t.Context(), prefix, true) { // a list may be left early
		break
	}
}

// Google's API, in pages, with an answer that must be asked for again, and with an error.
func TestGoogle(t *testing.T) {
	t.Parallel()
	asked := 0
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := func(status int, body string) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
		switch q := r.URL.Query(); {
		case r.URL.Path == "/storage/v1/b/missing/o":
			answer(http.StatusNotFound, `{"error": {"code": 404, "message": "The specified bucket does not exist."}}`)
		case r.URL.EscapedPath() == "/storage/v1/b/bucket/o/a%2Fb%3F":
			if q.Get("alt") != "media" || q.Get("generation") != "7" {
				answer(http.StatusBadRequest, r.URL.RawQuery)
				return
			}
			answer(http.StatusOK, "weights")
		case q.Get("pageToken") == "more":
			answer(http.StatusOK, `{"items": [{"name": "p/c", "size": "3", "generation": "8"}]}`)
		case q.Get("prefix") == "p/":
			if asked++; asked == 1 {
				answer(http.StatusServiceUnavailable, "later")
				return
			}
			answer(http.StatusOK, `{"prefixes": ["p/q/"], "items": [{"name": "a/b?", "size": "7", "generation": "7"}], "nextPageToken": "more"}`)
		case q.Get("prefix") == "bad/":
			answer(http.StatusOK, `{"items": [{"name": "x", "size": "many"}]}`)
		default:
			answer(http.StatusOK, `{`)
		}
	}))
	defer web.Close()
	open := func(address string) Store {
		l, err := Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), l, environment(googleEndpoint, web.URL))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open("gs://bucket/p")
	keys, all := listed(t, s, "p/", false)
	if d := cmp.Diff([]string{"a/b?", "p/c", "p/q/"}, keys); d != "" || asked != 2 {
		t.Errorf("asked %d times (-want +got):\n%s", asked, d)
	}
	if text, err := content(t.Context(), s, all["a/b?"]); err != nil || text != "weights" {
		t.Errorf("got %q, %v", text, err)
	}
	for name, prefix := range map[string]string{"a size that is none": "bad/", "no JSON": "none/"} {
		for _, err := range s.List(t.Context(), prefix, true) {
			if err == nil {
				t.Errorf("%s: no error", name)
			}
		}
	}
	for _, err := range open("gs://missing").List(t.Context(), "", true) {
		if err == nil || !strings.Contains(err.Error(), "404 Not Found: The specified bucket does not exist.") {
			t.Errorf("got %v", err)
		}
	}
}
