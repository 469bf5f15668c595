// Package objects reads objects from the stores of clouds: Amazon S3 and what speaks its protocol,
// Google Cloud Storage, and Azure Blob Storage. Addresses, variables and the file of credentials are
// Triton's.
//
// It stands between the libraries of these stores and package mirror. It lists and reads, and never
// writes. No error of it has a secret.
package objects

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Scheme is the beginning of an address.
type Scheme string

// Schemes of the stores.
const (
	S3     Scheme = "s3"
	Google Scheme = "gs"
	Azure  Scheme = "as"
)

// longestAddress bounds an address in bytes.
const longestAddress = 4 << 10

// Location is a folder in a store.
type Location struct {
	Scheme   Scheme
	Endpoint string // of S3, host:port; "": Amazon's
	IsSecure bool   // the endpoint has TLS
	Account  string // of Azure
	Bucket   string // or container
	Prefix   string // of all keys, with a slash at its end; "": the whole bucket

	text string
}

// String returns the address without superfluous slashes.
func (l Location) String() string { return l.text }

// IsRemote reports whether a repository is an address in a store, and not a folder.
func IsRemote(repository string) bool {
	scheme, _, found := strings.Cut(repository, "://")
	return found && (Scheme(scheme) == S3 || Scheme(scheme) == Google || Scheme(scheme) == Azure)
}

var (
	// endpoint is an address of S3 with a server of its own, as Triton recognizes it.
	endpoint = regexp.MustCompile(`^(http://|https://|)([0-9a-zA-Z.-]+:[0-9]+)/(.+)$`)
	bucket   = regexp.MustCompile(`^[0-9a-zA-Z$][0-9a-zA-Z._-]{0,254}$`)
	account  = regexp.MustCompile(`^[0-9a-zA-Z-]{1,63}$`)
)

// azureDomain is that of accounts in Azure's public cloud.
const azureDomain = ".blob.core.windows.net"

// Parse reads an address: s3://BUCKET/PATH, s3://HOST:PORT/BUCKET/PATH, s3://https://HOST:PORT/BUCKET/PATH,
// gs://BUCKET/PATH or as://ACCOUNT/CONTAINER/PATH. The path may be missing.
func Parse(text string) (Location, error) {
	l, err := parse(text)
	if err != nil {
		return Location{}, fmt.Errorf("%s is not an address of a model repository: %w", shown(text), err)
	}
	return l, nil
}

// shown returns an address for a message, without what may be a secret in it.
func shown(text string) string {
	if IsRemote(text) && len(text) <= longestAddress && !strings.ContainsAny(text, "@?") {
		return fmt.Sprintf("%q", text)
	}
	scheme, _, _ := strings.Cut(text, "://")
	return fmt.Sprintf("%q", scheme+"://…")
}

func parse(text string) (Location, error) {
	scheme, rest, _ := strings.Cut(text, "://")
	l := Location{Scheme: Scheme(scheme)}
	switch {
	case len(text) > longestAddress:
		return l, fmt.Errorf("it has more than %d bytes", longestAddress)
	case strings.ContainsAny(rest, "@?#"):
		return l, errors.New("an address has no user, query or fragment; credentials come from variables or from the file that TRITON_CLOUD_CREDENTIAL_PATH names")
	}
	if m := endpoint.FindStringSubmatch(rest); l.Scheme == S3 && m != nil {
		l.IsSecure, l.Endpoint, rest = m[1] == "https://", m[2], m[3]
		l.text = "s3://" + m[1] + m[2] + "/"
	} else {
		l.text = scheme + "://"
	}
	parts := strings.FieldsFunc(rest, func(r rune) bool { return r == '/' })
	if l.Scheme == Azure && len(parts) > 0 {
		l.Account, parts = strings.TrimSuffix(parts[0], azureDomain), parts[1:]
		if !account.MatchString(l.Account) {
			return l, fmt.Errorf("%q is no account", l.Account)
		}
		l.text += l.Account + "/"
	}
	if len(parts) == 0 {
		return l, errors.New("it names no bucket")
	}
	l.Bucket = parts[0]
	if !bucket.MatchString(l.Bucket) {
		return l, fmt.Errorf("%q is no bucket", l.Bucket)
	}
	l.text += strings.Join(parts, "/")
	for _, part := range parts[1:] {
		if err := checkSegment(part); err != nil {
			return l, err
		}
		l.Prefix += part + "/"
	}
	if _, err := url.Parse("https://host/" + url.PathEscape(l.Prefix)); err != nil {
		return l, errors.New("its path is none")
	}
	return l, nil
}
