package objects

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	minio_credentials "github.com/minio/minio-go/v7/pkg/credentials"
)

// amazon is the endpoint of Amazon's S3.
const amazon = "s3.amazonaws.com"

// metadataTime bounds a question for credentials to the machine's metadata service, which is missing
// outside of Amazon's cloud.
const metadataTime = 5 * time.Second

// s3 is a bucket of S3.
type s3 struct {
	client *minio.Client
	bucket string
}

func openS3(l Location, c credentials, getenv func(string) string) (Store, error) {
	host, secure := l.Endpoint, l.IsSecure
	if host == "" {
		host, secure = amazon, true
	}
	transport, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, err
	}
	client, err := minio.New(host, &minio.Options{Creds: identityS3(l, c, getenv), Secure: secure, Region: c.Region, Transport: transport, MaxRetries: tries})
	if err != nil {
		return nil, err
	}
	return &s3{client, l.Bucket}, nil
}

// identityS3 returns the given keys, else those of a profile. A bucket of Amazon's may also have the
// role of the machine, pod or task. Without any, requests are not signed.
func identityS3(l Location, c credentials, getenv func(string) string) *minio_credentials.Credentials {
	if c.KeyID != "" && c.Secret != "" {
		return minio_credentials.NewStaticV4(c.KeyID, c.Secret, c.Session)
	}
	chain := []minio_credentials.Provider{&minio_credentials.FileAWSCredentials{Profile: c.Profile}}
	if l.Endpoint == "" && mayHaveRole(getenv) {
		chain = append(chain, &minio_credentials.IAM{Client: &http.Client{Timeout: metadataTime}})
	}
	return minio_credentials.NewChainCredentials(chain)
}

// mayHaveRole reports whether a role is asked for. Of a pod or task variables say where. For the machine's it is the
// metadata service, which a variable of its own forbids, and not the others, as in Amazon's libraries.
func mayHaveRole(getenv func(string) string) bool {
	for _, name := range []string{"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"} {
		if getenv(name) != "" {
			return true // minio asks no other place then
		}
	}
	return !strings.EqualFold(getenv("AWS_EC2_METADATA_DISABLED"), "true")
}

// errChanged is the error of an object that is not the listed one any more.
var errChanged = errors.New("it has changed since it was listed")

// List implements Store.
func (s *s3) List(ctx context.Context, prefix string, flat bool) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for o := range s.client.ListObjects(ctx, s.bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: flat}) {
			if !yield(Object{o.Key, o.Size, o.ETag}, o.Err) || o.Err != nil {
				return
			}
		}
	}
}

// Read implements Store.
func (s *s3) Read(ctx context.Context, o Object) (io.ReadCloser, error) {
	var options minio.GetObjectOptions
	if err := options.SetMatchETag(o.Tag); err != nil {
		return nil, err
	}
	// with one request, which Client.GetObject sends at the first read
	body, info, _, err := (&minio.Core{Client: s.client}).GetObject(ctx, s.bucket, o.Key, options)
	if err == nil && info.ETag != o.Tag { // not every server knows the condition
		err = errors.Join(errChanged, body.Close())
	}
	if err != nil {
		return nil, err
	}
	return body, nil
}
