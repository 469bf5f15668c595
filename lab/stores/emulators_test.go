//go:build stores

package stores

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"tuner/lab/peers"
	"tuner/lab/process"
)

// secret is the key of every emulator, in base64 as Azure's keys are.
const secret = "aHVzaCBodXNoIGh1c2ggaHVzaCBodXNoIGh1c2ggaHVzaA=="

// emulator is a running store with an empty bucket.
type emulator struct {
	repository string   // address for --model-repository
	env        []string // for the engine
	put        func(ctx context.Context, key, text string) error
	remove     func(ctx context.Context, key string) error
	drop       func(ctx context.Context) error // the bucket, with all that is in it
}

// emulators start the stores, by the scheme of their addresses.
var emulators = map[string]func(t *testing.T) *emulator{"s3": startS3, "gs": startGoogle, "as": startAzure}

// run starts a program of the folder of stores until the test ends, and waits until it accepts
// connections at the address.
func run(t *testing.T, address string, env []string, program string, args ...string) {
	t.Helper()
	dir, err := peers.Dir()
	if err != nil {
		t.Fatal(err)
	}
	output := &process.Output{}
	cmd := exec.Command(filepath.Join(dir, "stores", program), args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: run lab/scripts/stores.sh", err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s: %s", program, output)
		}
	})
	eventually(t, program+" answers", func() bool {
		answer, err := http.Get("http://" + address + "/")
		return err == nil && answer.Body.Close() == nil
	})
}

// eventually waits up to 30 s for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 300 {
		if ok() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("not within 30 s: %s", what)
}

func freePort(t *testing.T) (address, port string) {
	t.Helper()
	ports, err := peers.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	return ports[0], ports[0][strings.LastIndexByte(ports[0], ':')+1:]
}

func startS3(t *testing.T) *emulator {
	address, port := freePort(t)
	run(t, address, nil, "moto/bin/moto_server", "-H", "127.0.0.1", "-p", port)
	client, err := minio.New(address, &minio.Options{Creds: credentials.NewStaticV4("id", secret, ""), Region: "us-east-1"})
	if err == nil {
		err = client.MakeBucket(t.Context(), "bucket", minio.MakeBucketOptions{Region: "us-east-1"})
	}
	if err != nil {
		t.Fatal(err)
	}
	return &emulator{
		repository: "s3://http://" + address + "/bucket/repo",
		env:        []string{"AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=" + secret, "AWS_DEFAULT_REGION=us-east-1"},
		put: func(ctx context.Context, key, text string) error {
			_, err := client.PutObject(ctx, "bucket", key, strings.NewReader(text), int64(len(text)), minio.PutObjectOptions{})
			return err
		},
		remove: func(ctx context.Context, key string) error {
			return client.RemoveObject(ctx, "bucket", key, minio.RemoveObjectOptions{})
		},
		drop: func(ctx context.Context) error {
			return ask(ctx, http.MethodPost, "http://"+address+"/moto-api/reset", "")
		},
	}
}

// ask sends a request that must succeed.
func ask(ctx context.Context, method, address, body string) error {
	r, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(answer.Body)
	if answer.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s: %s", method, address, answer.Status, text)
	}
	return errors.Join(err, answer.Body.Close())
}

func startGoogle(t *testing.T) *emulator {
	address, port := freePort(t)
	run(t, address, nil, "fake-gcs-server", "-scheme", "http", "-host", "127.0.0.1", "-port", port, "-backend", "memory")
	at := "http://" + address
	if err := ask(t.Context(), http.MethodPost, at+"/storage/v1/b", `{"name":"bucket"}`); err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	remove := func(ctx context.Context, key string) error {
		delete(keys, key)
		return ask(ctx, http.MethodDelete, at+"/storage/v1/b/bucket/o/"+url.PathEscape(key), "")
	}
	return &emulator{
		repository: "gs://bucket/repo", env: []string{"CLOUD_STORAGE_EMULATOR_ENDPOINT=" + at}, remove: remove,
		put: func(ctx context.Context, key, text string) error {
			keys[key] = true
			return ask(ctx, http.MethodPost, at+"/upload/storage/v1/b/bucket/o?uploadType=media&name="+url.QueryEscape(key), text)
		},
		drop: func(ctx context.Context) (err error) {
			for key := range keys {
				err = errors.Join(err, remove(ctx, key))
			}
			return errors.Join(err, ask(ctx, http.MethodDelete, at+"/storage/v1/b/bucket", ""))
		},
	}
}

func startAzure(t *testing.T) *emulator {
	address, port := freePort(t)
	run(t, address, []string{"AZURITE_ACCOUNTS=account:" + secret}, "azurite/node_modules/.bin/azurite-blob",
		"--blobHost", "127.0.0.1", "--blobPort", port, "--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry")
	connection := connectionTo(address, secret)
	client, err := azblob.NewClientFromConnectionString(connection, nil)
	if err == nil {
		_, err = client.CreateContainer(t.Context(), "bucket", nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &emulator{
		repository: "as://account/bucket/repo", env: []string{"AZURE_STORAGE_CONNECTION_STRING=" + connection},
		put: func(ctx context.Context, key, text string) error {
			_, err := client.UploadBuffer(ctx, "bucket", key, []byte(text), nil)
			return err
		},
		remove: func(ctx context.Context, key string) error {
			_, err := client.DeleteBlob(ctx, "bucket", key, nil)
			return err
		},
		drop: func(ctx context.Context) error {
			_, err := client.DeleteContainer(ctx, "bucket", nil)
			return err
		},
	}
}

// connectionTo returns the connection string of Azurite.
func connectionTo(address, key string) string {
	return "DefaultEndpointsProtocol=http;AccountName=account;AccountKey=" + key + ";BlobEndpoint=http://" + address + "/account;"
}
