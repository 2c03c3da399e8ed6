set -e
rm -rf repository
git init -q repository
cd repository
git config user.email nobody@example.org
git config user.name nobody
for round in 1 2 3 4 5; do
    for n in 0 1 2 3 4 5 6 7 8 9 10 11; do
        head -c $((round * 60000)) ../part$n.txt >file$n
        echo "$round" >>file$n
    done
    git add .
    git commit -qm "$round"
done
