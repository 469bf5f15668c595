package testserver

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
)

// writeRecord answers GET /record?from=NS&to=NS. It returns the entries whose answer was written
// between the two instants of the wall clock (from included, to excluded; no bound if not given).
// Each has four 64-bit little-endian numbers.
func (s *Server) writeRecord(conn net.Conn, query string) error {
	values, err := url.ParseQuery(query)
	bound := func(name string, otherwise int64) int64 {
		if !values.Has(name) {
			return otherwise
		}
		n, failed := strconv.ParseInt(values.Get(name), 10, 64)
		err = errors.Join(err, failed)
		return n
	}
	from, to := bound("from", 0), bound("to", 1<<62)
	if err != nil {
		_, err = conn.Write(appendHead(nil, "400 Bad Request", errorText(err.Error())))
		return err
	}
	var body bytes.Buffer
	for _, e := range s.Record() {
		if e.Written >= from && e.Written < to {
			if err := binary.Write(&body, binary.LittleEndian, e); err != nil {
				return err
			}
		}
	}
	_, err = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n%s", body.Len(), body.Bytes())
	return err
}

// Fetch gets the record of a server in another process between two instants of the wall clock, in
// nanoseconds since 1970.
func Fetch(ctx context.Context, address string, from, to int64) ([]Entry, error) {
	target := fmt.Sprintf("http://%s/record?from=%d&to=%d", address, from, to)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot ask %s: %w", target, err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("cannot ask for the record: %w", err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("cannot read the record: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("cannot read the record: the server answered %s: %s", answer.Status, body)
	}
	entries := make([]Entry, len(body)/binary.Size(Entry{}))
	if _, err := binary.Decode(body, binary.LittleEndian, entries); err != nil {
		return nil, fmt.Errorf("cannot read the record: %w", err)
	}
	return entries, nil
}
