package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// connectionString is the variable with which Azure's tools are sent to another server, such as an
// emulator.
const connectionString = "AZURE_STORAGE_CONNECTION_STRING"

// as is a container of Azure Blob Storage.
type as struct {
	client    *azblob.Client
	container string
}

func openAzure(l Location, c credentials, getenv func(string) string) (Store, error) {
	if c.Type != "" && c.Type != "key" {
		return nil, fmt.Errorf("the type of credentials %q is not supported: use an account key", c.Type)
	}
	account := l.Account
	if c.Account != "" {
		account = c.Account
	}
	url := "https://" + account + azureDomain
	var client *azblob.Client
	var err error
	switch text := getenv(connectionString); {
	case text != "" && getenv(credentialFile) == "":
		if client, err = azblob.NewClientFromConnectionString(text, nil); err != nil {
			return nil, errors.New(connectionString + " is no connection string") // the error may quote it
		}
	case c.Key == "":
		client, err = azblob.NewClientWithNoCredential(url, nil)
	default:
		var key *azblob.SharedKeyCredential
		if key, err = azblob.NewSharedKeyCredential(account, c.Key); err != nil {
			return nil, errors.New("its account key is no base64") // the error may quote it
		}
		client, err = azblob.NewClientWithSharedKeyCredential(url, key, nil)
	}
	return &as{client, l.Bucket}, err
}

// List implements Store.
func (a *as) List(ctx context.Context, prefix string, flat bool) iter.Seq2[Object, error] {
	if flat {
		return a.all(ctx, prefix)
	}
	return a.level(ctx, prefix)
}

func (a *as) all(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for pages := a.client.NewListBlobsFlatPager(a.container, &azblob.ListBlobsFlatOptions{Prefix: &prefix}); pages.More(); {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(Object{}, err)
				return
			}
			for _, item := range page.Segment.BlobItems {
				if !yield(objectOf(item), nil) {
					return
				}
			}
		}
	}
}

func (a *as) level(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		client := a.client.ServiceClient().NewContainerClient(a.container)
		for pages := client.NewListBlobsHierarchyPager("/", &container.ListBlobsHierarchyOptions{Prefix: &prefix}); pages.More(); {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(Object{}, err)
				return
			}
			for _, folder := range page.Segment.BlobPrefixes {
				if !yield(Object{Key: value(folder.Name)}, nil) {
					return
				}
			}
			for _, item := range page.Segment.BlobItems {
				if !yield(objectOf(item), nil) {
					return
				}
			}
		}
	}
}

// objectOf returns a blob of a list. A value that is missing is zero.
func objectOf(item *container.BlobItem) Object {
	o := Object{Key: value(item.Name)}
	if p := item.Properties; p != nil {
		o.Size, o.Tag = value(p.ContentLength), string(value(p.ETag))
	}
	return o
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// Read implements Store.
func (a *as) Read(ctx context.Context, o Object) (io.ReadCloser, error) {
	tag := azcore.ETag(o.Tag)
	answer, err := a.client.DownloadStream(ctx, a.container, o.Key, &azblob.DownloadStreamOptions{
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: &tag}},
	})
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}
