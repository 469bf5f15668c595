package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"tuner/internal/durable"
)

const (
	// googleEndpoint is the variable by which Google's library in Triton is sent to another server, such
	// as an emulator.
	googleEndpoint = "CLOUD_STORAGE_EMULATOR_ENDPOINT"
	// googleAPI is the server of Google's JSON API.
	googleAPI = "https://storage.googleapis.com"
	// googleScope is the right to read.
	googleScope = "https://www.googleapis.com/auth/devstorage.read_only"
	// headerTime bounds the wait for the beginning of an answer, as the libraries of the other stores do.
	headerTime = time.Minute
	// mostPage bounds the bytes of a page of a list. A page has 1000 objects at most.
	mostPage = 16 << 20
	// tries is how often a request is sent that the server could not answer just then.
	tries = 3
)

// gs is a bucket of Google Cloud Storage. Two calls of its JSON API are enough, which Google's own
// libraries would bring with a dozen modules.
type gs struct {
	client *http.Client
	base   string // of the bucket's objects
}

func openGoogle(ctx context.Context, l Location, c credentials, getenv func(string) string) (Store, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = headerTime
	transport.DisableCompression = true // objects come as they are stored
	client := &http.Client{Transport: transport}
	base := getenv(googleEndpoint)
	if base == "" {
		base = googleAPI
		tokens, err := identityGoogle(context.WithoutCancel(ctx), c)
		if err != nil {
			return nil, err
		}
		if tokens != nil {
			client.Transport = &oauth2.Transport{Source: tokens, Base: transport}
		}
	}
	return &gs{client, base + "/storage/v1/b/" + url.PathEscape(l.Bucket) + "/o"}, nil
}

// identityGoogle returns the identity in a file, else that of the machine; nil: without an
// identity only public buckets can be read.
func identityGoogle(ctx context.Context, c credentials) (oauth2.TokenSource, error) {
	if c.path == "" {
		found, err := google.FindDefaultCredentials(ctx, googleScope)
		if err != nil {
			return nil, nil
		}
		return found.TokenSource, nil
	}
	text, err := os.ReadFile(c.path)
	if err != nil {
		return nil, fmt.Errorf("cannot read its credentials %q: %w", c.path, durable.Cause(err))
	}
	// As in Triton, an account of a service or of a user. Other kinds name addresses and programs.
	var file struct {
		Type google.CredentialsType `json:"type"`
	}
	if err := json.Unmarshal(text, &file); err != nil || file.Type != google.ServiceAccount && file.Type != google.AuthorizedUser {
		return nil, fmt.Errorf("%q is no key of a service account or of a user", c.path)
	}
	found, err := google.CredentialsFromJSONWithType(ctx, text, file.Type, googleScope)
	if err != nil {
		return nil, fmt.Errorf("%q has no credentials of Google", c.path) // the error may quote the file
	}
	return found.TokenSource, nil
}

// page is a page of a list.
type page struct {
	Prefixes []string `json:"prefixes"`
	Items    []struct {
		Name       string `json:"name"`
		Size       string `json:"size"` // a number, as the API writes it
		Generation string `json:"generation"`
	} `json:"items"`
	Next string `json:"nextPageToken"`
}

// List implements Store.
func (g *gs) List(ctx context.Context, prefix string, flat bool) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		query := url.Values{"prefix": {prefix}, "fields": {"nextPageToken,prefixes,items(name,size,generation)"}}
		if !flat {
			query.Set("delimiter", "/")
		}
		for more := true; more; {
			p, err := g.page(ctx, query)
			if err != nil {
				yield(Object{}, err)
				return
			}
			for _, folder := range p.Prefixes {
				if !yield(Object{Key: folder}, nil) {
					return
				}
			}
			for _, item := range p.Items {
				size, err := strconv.ParseInt(item.Size, 10, 64)
				if !yield(Object{item.Name, size, item.Generation}, err) || err != nil {
					return
				}
			}
			query.Set("pageToken", p.Next)
			more = p.Next != ""
		}
	}
}

func (g *gs) page(ctx context.Context, query url.Values) (p page, err error) {
	body, err := g.get(ctx, g.base+"?"+query.Encode())
	if err != nil {
		return p, err
	}
	defer body.Close()
	if err := json.NewDecoder(io.LimitReader(body, mostPage)).Decode(&p); err != nil {
		return p, fmt.Errorf("cannot read a list of objects: %w", err)
	}
	return p, nil
}

// Read implements Store.
func (g *gs) Read(ctx context.Context, o Object) (io.ReadCloser, error) {
	return g.get(ctx, g.base+"/"+url.PathEscape(o.Key)+"?alt=media&generation="+url.QueryEscape(o.Tag))
}

// get returns the body of an answer. It asks again if the server could not answer.
func (g *gs) get(ctx context.Context, address string) (io.ReadCloser, error) {
	for n := 1; ; n++ {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return nil, err
		}
		answer, err := g.client.Do(r)
		if err == nil && answer.StatusCode == http.StatusOK {
			return answer.Body, nil
		}
		if err == nil {
			err = refusal(answer)
		}
		if n == tries || answer != nil && answer.StatusCode < http.StatusInternalServerError && answer.StatusCode != http.StatusTooManyRequests {
			return nil, err
		}
		select {
		case <-time.After(time.Duration(n) * time.Second):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// refusal returns the error that an answer stands for, and closes it.
func refusal(answer *http.Response) error {
	defer answer.Body.Close()
	var why struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	const most = 4 << 10 // bytes of a reason
	if json.NewDecoder(io.LimitReader(answer.Body, most)).Decode(&why) != nil || why.Error.Message == "" {
		return errors.New(answer.Status)
	}
	return fmt.Errorf("%s: %s", answer.Status, why.Error.Message)
}
