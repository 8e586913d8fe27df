// SPDX-License-Identifier: LGPL-2.1-or-later
//
// parse-requests.mjs FOLDER - Parca's own client reads all requests in a folder
//
// Node looks for @parca/client beside this file. Unknown members are errors. Prints the bytes of each
// profile, and its labels. Exits 1 if a request is not valid.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { WriteRawRequest } from '@parca/client/dist/parca/profilestore/v1alpha1/profilestore.js';

let code = 0;
for (const name of readdirSync(process.argv[2]).sort()) {
    const text = readFileSync(join(process.argv[2], name), 'utf-8');
    try {
        const request = WriteRawRequest.fromJsonString(text, { ignoreUnknownFields: false });
        const [series] = request.series;
        const labels = series.labels.labels.map((label) => `${label.name}=${label.value}`);
        console.log(JSON.stringify({ name, bytes: series.samples[0].rawProfile.length, labels }));
    } catch (error) {
        console.error(`${name}: ${error.message}`);
        code = 1;
    }
}
process.exit(code);
