// Package stores has the engine serve models from object stores: moto for S3, fake-gcs-server for
// Google Cloud Storage, and Azurite for Azure Blob Storage, each as a process. `make -C lab stores`
// installs them and runs the tests.
package stores
