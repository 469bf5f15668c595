package objects

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"tuner/internal/durable"
)

// credentialFile names the file of credentials, as in Triton.
const credentialFile = "TRITON_CLOUD_CREDENTIAL_PATH"

// mostCredentials bounds that file in bytes.
const mostCredentials = 1 << 20

// credentials are those of one store. Unused fields are empty.
type credentials struct {
	// of S3
	KeyID   string `json:"key_id"`
	Secret  string `json:"secret_key"`
	Session string `json:"session_token"`
	Region  string `json:"region"`
	Profile string `json:"profile"`
	// of Azure
	Account string `json:"account_str"`
	Key     string `json:"account_key"`
	Type    string `json:"auth_type"`

	path string // of Google's: a file
}

// file is the file of credentials: by scheme, then by the beginning of addresses.
type file struct {
	S3     map[string]credentials `json:"s3"`
	Google map[string]string      `json:"gs"`
	Azure  map[string]credentials `json:"as"`
}

// credentialsOf returns the credentials for a location: of the file, else of variables. As in Triton,
// the longest beginning of the address in the file counts.
func credentialsOf(l Location, getenv func(string) string) (credentials, error) {
	path := getenv(credentialFile)
	if path == "" {
		return credentialsFrom(getenv), nil
	}
	f, err := readFile(path)
	if err != nil {
		return credentials{}, fmt.Errorf("cannot read %s=%q: %w", credentialFile, path, err)
	}
	best, found := credentials{}, -1
	consider := func(beginning string, c credentials) {
		if strings.HasPrefix(l.text, beginning) && len(beginning) > found {
			best, found = c, len(beginning)
		}
	}
	switch l.Scheme {
	case S3:
		for beginning, c := range f.S3 {
			consider(beginning, c)
		}
	case Google:
		for beginning, path := range f.Google {
			consider(beginning, credentials{path: path})
		}
	case Azure:
		for beginning, c := range f.Azure {
			consider(beginning, c)
		}
	}
	if found < 0 {
		return best, fmt.Errorf("cannot match credential for path %s: %s=%q has none for it", l, credentialFile, path)
	}
	return best, nil
}

// readFile reads the file of credentials. Its errors do not quote it.
func readFile(path string) (f file, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return f, durable.Cause(err)
	}
	if !info.Mode().IsRegular() || info.Size() > mostCredentials {
		return f, fmt.Errorf("it is not a file of at most %d bytes", mostCredentials)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return f, durable.Cause(err)
	}
	if json.Unmarshal(text, &f) != nil {
		return f, errors.New(`it is not JSON such as {"s3": {"": {"key_id": "…", "secret_key": "…"}}}`)
	}
	return f, nil
}

// credentialsFrom returns those of the variables that Triton reads.
func credentialsFrom(getenv func(string) string) credentials {
	region := getenv("AWS_DEFAULT_REGION")
	if region == "" {
		region = getenv("AWS_REGION")
	}
	return credentials{
		KeyID: getenv("AWS_ACCESS_KEY_ID"), Secret: getenv("AWS_SECRET_ACCESS_KEY"), Session: getenv("AWS_SESSION_TOKEN"),
		Region: region, Profile: getenv("AWS_PROFILE"),
		Account: getenv("AZURE_STORAGE_ACCOUNT"), Key: getenv("AZURE_STORAGE_KEY"), Type: getenv("AZURE_STORAGE_AUTH_TYPE"),
		path: getenv("GOOGLE_APPLICATION_CREDENTIALS"),
	}
}
