package redact

import (
	"strings"
	"testing"
)

func TestArgs(t *testing.T) {
	const x = Mark
	jwt := "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"
	for _, c := range []struct{ line, want string }{ // arguments are divided by |
		{"python|t.py|--password|hunter2|--epochs|3", "python|t.py|--password|" + x + "|--epochs|3"},
		{"--password|two words|b", "--password|" + x + "|b"},
		{"--db-passwd=x1|--DB_PASSWORD=y|-db.pwd|z", "--db-passwd=" + x + "|--DB_PASSWORD=" + x + "|-db.pwd|" + x},
		{"--token=abc|--hf_token|abc|--hub-token|abc|--auth-token=9", "--token=" + x + "|--hf_token|" + x + "|--hub-token|" + x + "|--auth-token=" + x},
		{"WANDB_API_KEY=0123|python", "WANDB_API_KEY=" + x + "|python"},
		{"MY_VERY_OWN_KEY=0123", "MY_VERY_OWN_KEY=" + x},
		{"wandb.api_key=0123|logger.apiKey=4|+secret=5", "wandb.api_key=" + x + "|logger.apiKey=" + x + "|+secret=" + x},
		{"AWS_SECRET_ACCESS_KEY=q|AWS_ACCESS_KEY_ID=q|--access-key|q|--private_key=q", "AWS_SECRET_ACCESS_KEY=" + x + "|AWS_ACCESS_KEY_ID=" + x + "|--access-key|" + x + "|--private_key=" + x},
		{"postgresql://bob:p%40ss@db/x|s3://u:q@h", "postgresql://bob:" + x + "@db/x|s3://u:" + x + "@h"},
		{"a|ghp_0123456789abcdefghij0123456789abcdef|hf_abcdefghijklmnopqrstuvwxyz0123", "a|" + x + "|" + x},
		{"AKIAIOSFODNN7EXAMPLE|xoxb-123456789012-abcdefghij|sk-proj-abcdefghijklmnopqrst", x + "|" + x + "|" + x},
		{jwt + "|id=" + jwt, x + "|id=" + x},
		{"sh|-c|HF_TOKEN=abc python t.py --password 'x' -q", "sh|-c|HF_TOKEN=" + x + " python t.py --password " + x + " -q"},
		{"curl|-H|Authorization: Bearer abcdefghijklmnop1234", "curl|-H|Authorization: Bearer " + x},
		{"python|-c|login(token='abcdefgh')", "python|-c|login(token=" + x + ")"},
		{"sh|-c|a --password 'two words' b --token=\"x y z\";c", "sh|-c|a --password " + x + "  b --token=" + x + "  ;c"},
		{"https://b.s3.amazonaws.com/d.tar?X-Amz-Signature=0123456789abcdef0123", "https://b.s3.amazonaws.com/d.tar?X-Amz-Signature=" + x},
		{"--credentials|abc|--passphrase|abc", "--credentials|" + x + "|--passphrase|" + x},
	} {
		if got := strings.Join((&Rules{}).Args(strings.Split(c.line, "|")), "|"); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.line, got, c.want)
		}
		again := strings.Join((*Rules)(nil).Args(strings.Split(c.want, "|")), "|")
		if again != c.want {
			t.Errorf("taken out twice: %s\nbecame %s", c.want, again)
		}
	}
}

// What a training is told with names that sound alike stays.
func TestNearMisses(t *testing.T) {
	for _, line := range []string{
		"--tokenizer bert", "--tokenizer=gpt2 --tokens 512 --max-tokens 512 --num_tokens=8 --tokens-per-sample 512", "--key-frames 3 --keypoints 17",
		"--keypoints=coco --key image --sort-key=date --image_key jpg --label-key caption --key=val --monkey 3 --keyboard us",
		"--pad-token <pad> --mask_token=[MASK] --eos-token </s> --image-token <image> --bos_token 5 --token-dropout 0.1",
		"--use-auth-token true --use_auth_token --lr 3", "--password-file /run/p --token_path a.txt --secret-santa 3", "--password", "--token --lr 3",
		"--author bob --authors a,b --passes 3 --compass n --bypass 1 --pass-rate 0.5 --pwdless x", "--secretary anna",
		"http://host:80/path@2 https://user@host/x s3://bucket/key", "git 0123456789abcdef0123456789abcdef01234567 sha=0123456789abcdef0123456789abcdef01234567",
		"task-runner --risk-level 3 disk-sk-1", "TOKEN=$TOKEN --password $PW", "--no-token false", "model.key_dim=64 KEY=3 num_keys=4 --query-key-norm 1",
		"hf_transfer sk-learn hf_home=/x", "--cls-token 1 --use-cls_token=yes",
	} {
		args := strings.Fields(line)
		if got := strings.Join((&Rules{}).Args(args), " "); got != line {
			t.Errorf("%s\nbecame %s", line, got)
		}
		if got := (&Rules{}).Line(line); got != line {
			t.Errorf("as a line: %s\nbecame %s", line, got)
		}
	}
}

func TestOwnRules(t *testing.T) {
	r, err := Parse([]string{`--customer[= ](\S+)`, "ACME-[0-9]+"})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(r.Args([]string{"--customer=bob", "xACME-12y", "--password", "p"}), " "); got != "--customer=[redacted] x[redacted]y --password [redacted]" {
		t.Error(got)
	}
	if got := r.Line("--customer bob ACME-1"); got != "--customer [redacted] [redacted]" {
		t.Error(got)
	}
	if r, err = Parse([]string{None}); err != nil || r.Line("--password p") != "--password p" || r.Args([]string{"--token=x"})[0] != "--token=x" {
		t.Error("none takes something out", err)
	}
	if _, err = Parse([]string{"("}); err == nil {
		t.Error("( is a regular expression")
	}
}
