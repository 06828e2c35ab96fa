// The reference implementation of Go (golang.org/x/mod/sumdb) as a verifier of what Alphaloom wrote: go run verify.go FOLDER.
package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type cases struct {
	Leaves, Roots          []string
	Inclusion, Consistency []json.RawMessage
	Notes                  [][]string
}

func check(ok bool, what string, values ...interface{}) {
	if !ok {
		fmt.Fprintf(os.Stderr, what+"\n", values...)
		os.Exit(1)
	}
}

func read(raw json.RawMessage) (int64, int64, []tlog.Hash) {
	var first, size int64
	var texts []string
	check(json.Unmarshal(raw, &[]interface{}{&first, &size, &texts}) == nil, "a proof cannot be read")
	hashes := []tlog.Hash{}
	for _, text := range texts {
		hash, err := tlog.ParseHash(text)
		check(err == nil, "%v", err)
		hashes = append(hashes, hash)
	}
	return first, size, hashes
}

func flip(hashes []tlog.Hash) []tlog.Hash {
	changed := append([]tlog.Hash{}, hashes...)
	if len(changed) == 0 {
		return append(changed, tlog.Hash{})
	}
	changed[0][0] ^= 1
	return changed
}

func equal(one, other []tlog.Hash) bool {
	if len(one) != len(other) {
		return false
	}
	for place := range one {
		if one[place] != other[place] {
			return false
		}
	}
	return true
}

func open(text, key string) error {
	verifier, err := note.NewVerifier(key)
	if err == nil {
		_, err = note.Open([]byte(text), note.VerifierList(verifier))
	}
	return err
}

func main() {
	var told cases
	raw, err := os.ReadFile(filepath.Join(os.Args[1], "cases.json"))
	check(err == nil && json.Unmarshal(raw, &told) == nil, "cases.json cannot be read: %v", err)
	stored, leaves, roots := []tlog.Hash{}, []tlog.Hash{}, []tlog.Hash{}
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		found := []tlog.Hash{}
		for _, index := range indexes {
			found = append(found, stored[index])
		}
		return found, nil
	})
	for index, text := range told.Leaves {
		entry, _ := base64.StdEncoding.DecodeString(text)
		hashes, err := tlog.StoredHashes(int64(index), entry, reader)
		check(err == nil, "%v", err)
		stored, leaves = append(stored, hashes...), append(leaves, tlog.RecordHash(entry))
	}
	for size, text := range told.Roots {
		hash, err := tlog.ParseHash(text)
		check(err == nil, "%v", err)
		roots = append(roots, hash)
		if size > 0 { // this implementation has another root of the empty tree
			own, _ := tlog.TreeHash(int64(size), reader)
			check(own == hash, "root of %d", size)
		}
	}
	count := map[string]int{"roots": len(roots)}
	for _, raw := range told.Inclusion {
		index, size, hashes := read(raw)
		own, _ := tlog.ProveRecord(size, index, reader)
		check(equal(own, hashes), "inclusion %d in %d", index, size)
		check(tlog.CheckRecord(hashes, size, roots[size], index, leaves[index]) == nil, "inclusion %d in %d", index, size)
		check(tlog.CheckRecord(flip(hashes), size, roots[size], index, leaves[index]) != nil, "a changed proof holds")
		count["inclusion"]++
	}
	for _, raw := range told.Consistency {
		old, size, hashes := read(raw)
		count["consistency"]++
		if old == 0 { // this implementation proves nothing of an empty tree
			continue
		}
		own, _ := tlog.ProveTree(size, old, reader)
		check(equal(own, hashes), "consistency %d to %d", old, size)
		check(tlog.CheckTree(hashes, size, roots[size], old, roots[old]) == nil, "consistency %d to %d", old, size)
		check(tlog.CheckTree(flip(hashes), size, roots[size], old, roots[old]) != nil, "a changed proof holds")
	}
	for _, one := range told.Notes {
		check(open(one[0], one[1]) == nil, "a note does not open: %v", open(one[0], one[1]))
		check(open(strings.Replace(one[0], "\n", "x\n", 1), one[1]) != nil, "a changed note opens")
		count["notes"]++
	}
	answer, _ := json.Marshal(map[string]interface{}{"count": count})
	fmt.Println(string(answer))
}
